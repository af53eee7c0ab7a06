import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apart } from '../apart/apart.ts'
import type * as Notice from './notice.ts'

/** Storms within which each mutant must be noticed. Most take one or two. */
const SEEDS = 60

/** Every protective rule of the session protocol, removed one at a time. */
const mutants: readonly Notice.StreamMutant[] = [
  {
    name: 'a region accepts what it lacks the causes of',
    file: 'src/streams/server/session-sends.ts',
    find: 'if (!covers(room.position, frame.seen)) return lag(missingFrom(room.position, frame.seen))',
    replace: '',
  },
  {
    name: 'a region merges before the causes',
    file: 'src/streams/server/room.ts',
    find: '{ ...entry.seen, [entry.log]: entry.n }',
    replace: '{ [entry.log]: entry.n }',
  },
  {
    name: "a sender's previous message need not come first",
    file: 'src/streams/server/room.ts',
    find: 'if (entry.after !== null && entry.after.log !== entry.log) {',
    replace: 'if (false) {',
  },
  {
    name: 'a client is believed without its earlier messages',
    file: 'src/streams/server/session-sends.ts',
    find: 'if (!coversPlace(room.position, proof.acknowledged)) {',
    replace: 'if (false) {',
  },
  {
    name: 'an old session writes on',
    file: 'src/streams/log/memory-log.ts',
    find: "if (generation !== null && this.#sessions.get(client)?.generation !== generation) return { kind: 'fenced' }",
    replace: '',
  },
  {
    name: 'a replay does not wait for the fence',
    file: 'src/streams/server/session.ts',
    find: 'if (!fenced && !(await fence(frame.previousRegion))) return',
    replace: 'if (!fenced) void fence(frame.previousRegion)',
  },
  {
    name: 'a client skips over a jump',
    file: 'src/streams/client/intake.ts',
    find: 'entry.n !== have + 1 || ',
    replace: '',
  },
  {
    name: 'a client takes the next of a log before its causes',
    file: 'src/streams/client/intake.ts',
    find: ' || !covers(arrived, entry.seen)',
    replace: '',
    weather: { frameSwapped: 0.2 },
  },
  {
    name: 'a client skips over places of the final order',
    file: 'src/streams/client/intake.ts',
    find: "if (after > ordered) return 'jump'",
    replace: '',
    weather: { frameSwapped: 0.2 },
  },
  {
    name: 'a client that resumes while its log is read is not fed',
    file: 'src/streams/server/reading.ts',
    find: 'if (mine === life) take(found)',
    replace: 'if (mine !== life) return\n        take(found)',
    weather: { resumeTwice: 1 },
  },
  {
    name: 'what stands behind a read of the final order is not sent',
    file: 'src/streams/server/order-feed.ts',
    find: 'createReading(pump, failed)',
    replace: 'createReading(() => {}, failed)',
    weather: { resumeTwice: 1 },
  },
  {
    name: 'a client that starts over forgets what it has seen',
    file: 'src/streams/client/intake.ts',
    find: 'shown = furthest(shown, after.logs)',
    replace: 'shown = after.logs',
    bounds: { retainMs: 1_000, trimEveryMs: 500 },
    // Servers say most of it: a client that wrote in the cut waits on the other side for its own message anyway.
    messages: 1,
    storm: { publishes: 40, crossings: 8, cutOffMs: 10_000 },
    breaks: 'causes',
  },
  {
    name: 'a second copy is shown by regions',
    file: 'src/streams/log/memory-log.ts',
    find: 'copy: from.cseq < floor }',
    replace: 'copy: false }',
  },
  {
    name: 'a second copy is shown by a client that moved',
    file: 'src/streams/client/intake.ts',
    find: "entry.kind === 'message' && received.first(entry)",
    replace: "entry.kind === 'message' && (received.first(entry) || true)",
  },
  {
    name: 'a message is acknowledged before it is durable',
    file: 'src/streams/server/room.ts',
    find: 'const written = await log.write(name,',
    replace:
      "for (const { answer } of accepted.splice(0)) answer({ kind: 'accepted', place: null, duplicate: false })\n    const written = await log.write(name,",
  },
  {
    name: 'pending messages are not sent again',
    file: 'src/streams/client/client.ts',
    find: 'outgoing.reconnected()',
    replace: '',
  },
  {
    name: 'regions trust hints alone',
    file: 'src/streams/server/puller.ts',
    find: 'room.offer(answer.entries)',
    replace: '',
  },
  {
    name: 'a message of a server is another one at every attempt',
    file: 'src/streams/server/publish.ts',
    find: 'const ofId = sha256Base64Url(id)',
    replace: 'const ofId = sha256Base64Url(id + String(performance.now()))',
  },
  {
    name: 'a message of a server does not wait for its causes',
    file: 'src/streams/server/publish.ts',
    find: 'await reached(room, seen, over)',
    replace: '',
  },
]

for (const mutant of mutants) {
  test(`the simulation notices when ${mutant.name}`, async (context) => {
    const module = import.meta.resolve('./notice.ts')
    const noticed = await apart<typeof Notice, 'notice'>(module, 'notice', mutant, SEEDS)
    if (noticed === null) return assert.fail(`not noticed in ${SEEDS} storms`)
    const { seed, rule, text } = noticed
    context.diagnostic(`seed ${seed}: ${rule}: ${text}`)
    // Any test would notice a mutant that merely throws.
    assert.notEqual(rule, 'sound', text)
  })
}
