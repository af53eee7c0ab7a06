import assert from 'node:assert/strict'
import { defaults, isOnceError, limits } from 'onceonly'
import { eventsOf, messageOf, onInbox } from '../../../support/events/inbox/stage.ts'

onInbox('an effect that never ends has failed after `effectMs`', { effectMs: 100, maxFailures: 2 }, async (stage) => {
  const { inbox, events, advance, write, written } = stage
  const signals: AbortSignal[] = []
  const hang = (deliveries: number) =>
    inbox.receive(messageOf('m1', { deliveries }), async (_, { tx, signal }) => {
      signals.push(signal)
      await write(tx, 'never')
      await new Promise(() => {})
    })
  const first = await hang(1)
  assert.ok(first.kind === 'later' && first.counted, first.kind)
  assert.ok(isOnceError(first.error, 'transaction_too_long'))
  assert.match(first.error.message, /more than 100 ms/)
  await advance(first.delayMs)
  const second = await hang(2)
  assert.ok(second.kind === 'parked' && second.reason === 'failed', second.kind)
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true],
  )
  // Its transactions are over: the next message has the database to itself.
  assert.equal((await inbox.receive(messageOf('m2'), (_, { tx }) => write(tx, 'm2'))).kind, 'handled')
  assert.deepEqual(await written(), ['m2'])
  assert.equal(eventsOf(events, 'failed').length, 1)
})

onInbox('`effectMs` ends before the transaction does', {}, async ({ another }) => {
  for (const effectMs of [0, 1.5, Number.NaN, defaults.leaseMs + 1]) {
    assert.throws(
      () => another({ effectMs }),
      (error) => isOnceError(error, 'bad_option') && error.details['option'] === 'effectMs',
    )
  }
})

onInbox('bodies under one id are kept up to a bound, and all of them are reported', {}, async ({ inbox, events }) => {
  const most = limits.inboxConflictLetters
  const present = (n: number) => inbox.receive(messageOf('m1', { body: JSON.stringify({ n }) }), () => {})
  assert.equal((await present(0)).kind, 'handled')
  for (let n = 1; n <= most + 3; n++) assert.equal((await present(n)).kind, 'conflict')
  assert.equal(await inbox.deadLetters.count({ reason: 'conflict' }), most)
  // A copy of one that is kept takes no room.
  assert.equal((await present(1)).kind, 'conflict')
  const kept = eventsOf(events, 'conflict').map((event) => event.kept)
  assert.deepEqual(kept, [...Array.from({ length: most }, () => true), false, false, false, true])
  // The first ones are there, whole; another message has room of its own.
  const { rows } = await inbox.deadLetters.list({ reason: 'conflict' })
  assert.deepEqual(
    rows.map(({ message }) => (JSON.parse(message.body) as { n: number }).n).toSorted((a, b) => a - b),
    Array.from({ length: most }, (_, at) => at + 1),
  )
  for (const n of [1, 2]) await inbox.receive(messageOf('m2', { body: JSON.stringify({ n }) }), () => {})
  assert.equal(await inbox.deadLetters.count({ reason: 'conflict' }), most + 1)
})
