import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createHistory } from './history.ts'
import { togetherOf } from './row-props.ts'
import { quoteOf, saidOf } from './said.ts'

const log = 'eu.1'

function entryOf(n: number, client: string, cseq = 1) {
  const seen: Record<string, number> = n === 1 ? {} : { [log]: n - 1 }
  const body = { by: 'Ada', text: `message ${n}` }
  return { log, n, client, epoch: 1, cseq, seen, after: null, replyTo: null, body, acceptedAtMs: 0 }
}

test('clocks of a crowd are written with names only where they are shown', () => {
  const people = 300
  const spelled = mock.method(Object, 'fromEntries')
  const history = createHistory()
  for (let n = 1; n <= people; n++) history.add(entryOf(n, `c${n}`))
  assert.equal(spelled.mock.callCount(), 0)
  spelled.mock.restore()
  const last = history.events.at(-1)
  assert.equal(last?.host, `Ada-${people}`)
  assert.equal(Object.keys(last.clock).length, people)
  assert.ok(Object.values(last.clock).every((count) => count === 1))
  history.add(entryOf(people + 1, 'c1', 2))
  assert.equal(history.events.at(-1)?.clock['Ada'], 2)
  assert.deepEqual(history.events[0]?.clock, { Ada: 1 })
})

test('what many wrote at the same time is named by some beginnings, however long it is', () => {
  const messages = Array.from({ length: 100 }, (_, at) => ({ name: 'Eve', text: `${at} ${'z'.repeat(60_000)}` }))
  const text = togetherOf(messages)
  assert.ok(text.length < 1_000, `${text.length} characters`)
  assert.match(text, /^0 zzz.*…, 1 zzz.*, and 95 more$/)
  assert.equal(togetherOf([{ name: 'Ada', text: 'yes' }]), 'yes')
  assert.equal(togetherOf([]), '')
})

test('a name that is longer than a line is cut, in a message and in a quote of it', () => {
  const said = saidOf({ by: 'N'.repeat(60_000), text: 'hello' })
  assert.equal(said.name, 'N'.repeat(40))
  assert.equal(quoteOf({ name: 'N'.repeat(60_000), text: 'hello' }).name, 'N'.repeat(40))
})
