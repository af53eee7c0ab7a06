import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as Codec from '../../../src/streams/protocol/codec.ts'
import * as codec from '../../../src/streams/protocol/codec.ts'
import { importMutated, type Mutant } from '../simulation/mutate.ts'
import { compareForms } from './compact-story.ts'

/** Stories within which each mutant must be noticed. */
const SEEDS = 6

type Rule = Omit<Mutant, 'file'>

const write: readonly Rule[] = [
  {
    name: 'the person who had a number before still has it',
    find: 'if (before !== undefined) senderNumbers.delete(`${before.client}/${before.epoch}`)',
    replace: '',
  },
  {
    name: 'entries of another generation take the compact form',
    find: 'generation < 1 || generation !== numbers.generation || after',
    replace: 'after',
  },
  {
    name: 'entries that do not follow take the compact form',
    find: '|| after !== numbers.sent) return false',
    replace: ') return false',
  },
  {
    name: 'more logs have a number than a position has',
    find: 'if (numbers.logs.length + names.size > sessionLimits.logs) return false',
    replace: '',
  },
  {
    name: 'numbers that are too far take the compact form',
    find: 'return numbers.every((each) => near(each) === each)',
    replace: 'return true',
  },
  {
    name: 'a place that does not follow is not said',
    find: 'if (entry.n !== n || entry.cseq !== cseq) {',
    replace: 'if (entry.cseq !== cseq) {',
  },
  {
    name: 'a number that does not follow is not said',
    find: 'if (entry.n !== n || entry.cseq !== cseq) {',
    replace: 'if (entry.n !== n) {',
  },
  {
    name: 'an author has seen what has come',
    find: 'if (!isKnown(numbers, entry.seen)) {',
    replace: 'if (false) {',
  },
  {
    name: 'a position says only its first logs',
    find: 'const bit = number % LOGS_PER_BYTE',
    replace: 'const bit = number',
  },
  {
    name: "an author's previous message is the last that came",
    find: 'if (after?.log !== sender.place?.log || after?.n !== sender.place?.n) {',
    replace: 'if (after?.log !== sender.place?.log) {',
  },
  {
    name: 'a reply is counted from elsewhere than it is read',
    find: 'to.from(target.cseq, replyTo.cseq)',
    replace: 'to.from(target.ordered, replyTo.cseq)',
  },
  {
    name: 'final places follow, wherever they are',
    find: 'const follows = after === numbers.ordered && from === after + 1',
    replace: 'const follows = true',
  },
  {
    name: 'final places follow those that the client has, wherever they begin',
    find: 'const follows = after === numbers.ordered && from === after + 1',
    replace: 'const follows = after === numbers.ordered',
  },
]

const read: readonly Rule[] = [
  { name: 'a client does not note what came', find: '  noteEntry(numbers, sender, entry)\n', replace: '' },
  { name: 'a client does not count entries', find: 'numbers.sent += entries.length', replace: '' },
  { name: 'a client does not note times', find: '  numbers.acceptedAtMs = acceptedAtMs\n', replace: '' },
  { name: 'a client does not count final places', find: 'numbers.ordered = from + identities.length - 1', replace: '' },
]

const sessions: readonly Rule[] = [
  {
    name: 'sessions of a connection share their numbers',
    find: 'const session = sessions.get(channel)\n      if',
    replace: 'const session = sessions.get(0)\n      if',
  },
  {
    name: 'a client does not note what is said in JSON',
    find: "if (read.kind === 'frame') noteIn(sessions, read.channel, read.frame)",
    replace: '',
  },
  {
    name: 'a server does not note what it says in JSON',
    find: '      noteIn(sessions, channel, frame)\n      return serverText',
    replace: '      return serverText',
  },
]

const of = (file: string, rules: readonly Rule[]) => rules.map((rule): Mutant => ({ ...rule, file }))

test('the forms say the same in every story', () => {
  for (let seed = 1; seed <= SEEDS; seed++) assert.equal(compareForms(codec, seed), null)
})

for (const mutant of [
  ...of('src/streams/protocol/compact-write.ts', write),
  ...of('src/streams/protocol/compact-read.ts', read),
  ...of('src/streams/protocol/codec.ts', sessions),
]) {
  test(`a comparison of the forms notices when ${mutant.name}`, async (context) => {
    const mutated = await importMutated<typeof Codec>('src/streams/protocol/codec.ts', mutant)
    for (let seed = 1; seed <= SEEDS; seed++) {
      const difference = noticed(mutated, seed)
      if (difference !== null) return context.diagnostic(difference.slice(0, 200))
    }
    assert.fail(`not noticed in ${SEEDS} stories`)
  })
}

function noticed(mutated: typeof Codec, seed: number): string | null {
  try {
    return compareForms(mutated, seed)
  } catch (error) {
    return String(error)
  }
}
