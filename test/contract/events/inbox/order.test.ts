import assert from 'node:assert/strict'
import type { SqlTx } from 'onceonly'
import { MINUTE, notDone } from 'onceonly'
import { type Inbox, postpone, type Receipt } from 'onceonly/inbox'
import { eventsOf, messageOf, onInbox } from '../../../support/events/inbox/stage.ts'

const numbered = (sequence: number, changes = {}) => messageOf(`k:${sequence}`, { key: 'k', sequence, ...changes })

function recorder(inbox: Inbox<SqlTx>) {
  const handled: number[] = []
  const take = (sequence: number, changes = {}): Promise<Receipt> =>
    inbox.receive(numbered(sequence, changes), (_, { message }) => void handled.push(message.sequence ?? 0))
  return { handled, take }
}

onInbox('messages of a key are handled by their numbers, however they come', { ordered: true }, async (stage) => {
  const { inbox, second, events } = stage
  const { handled, take } = recorder(inbox)
  const early = await take(2)
  assert.ok(early.kind === 'waiting' && early.expected === 1 && early.delayMs > 0)
  assert.equal((await take(3)).kind, 'waiting')
  assert.equal((await take(1)).kind, 'handled')
  assert.equal((await take(3, { deliveries: 2 })).kind, 'waiting')
  assert.equal((await take(2, { deliveries: 2 })).kind, 'handled')
  assert.equal((await take(1, { deliveries: 2 })).kind, 'duplicate')
  const elsewhere = await second()
  const receipt = await elsewhere.receive(numbered(3, { deliveries: 3 }), () => void handled.push(3))
  assert.equal(receipt.kind, 'handled')
  assert.deepEqual(handled, [1, 2, 3])
  assert.equal(eventsOf(events, 'waiting').length, 3)
  // Another key, and what has no place in a line, do not wait.
  assert.equal((await inbox.receive(messageOf('o', { key: 'other', sequence: 1 }), () => {})).kind, 'handled')
  assert.equal((await inbox.receive(messageOf('p', { key: 'k', sequence: null }), () => {})).kind, 'handled')
  const explained = await inbox.explain('k:3')
  assert.deepEqual([explained.failures, explained.unfinished], [0, 0])
})

onInbox('copies from a paused relay come in one burst, and the order is restored', { ordered: true }, async (stage) => {
  const { inbox, second } = stage
  const handled: number[] = []
  const inboxes = [inbox, await second()]
  // A relay that was paused in mid-batch publishes its old numbers again, behind those of its successor.
  const waiting = [3, 4, 5, 6, 1, 2, 3, 4].map((sequence, copy) => ({ sequence, copy, deliveries: 1 }))
  for (let rounds = 0; waiting.length > 0; rounds++) {
    assert.ok(rounds < 100, 'it does not end')
    const batch = waiting.splice(0)
    const receipts = await Promise.all(
      batch.map(({ sequence, deliveries }, index) =>
        (inboxes[index % 2] as Inbox<SqlTx>).receive(
          numbered(sequence, { deliveries }),
          () => void handled.push(sequence),
        ),
      ),
    )
    receipts.forEach((receipt, index) => {
      const each = batch[index]
      if (each !== undefined && (receipt.kind === 'waiting' || receipt.kind === 'later')) {
        waiting.push({ ...each, deliveries: each.deliveries + 1 })
      }
    })
  }
  assert.deepEqual(handled, [1, 2, 3, 4, 5, 6])
})

onInbox(
  'a failing message keeps its key waiting, and no hole is seen in that',
  {
    ordered: { holeMs: 1 * MINUTE },
    maxFailures: 3,
  },
  async ({ inbox, advance, events }) => {
    const { handled, take } = recorder(inbox)
    const fail = (deliveries: number) =>
      inbox.receive(numbered(1, { deliveries }), () => {
        throw new Error('no')
      })
    assert.equal((await take(2)).kind, 'waiting')
    for (let deliveries = 1; deliveries <= 2; deliveries++) {
      assert.equal((await fail(deliveries)).kind, 'later')
      await advance(50_000)
      assert.equal((await take(2, { deliveries: deliveries + 1 })).kind, 'waiting')
    }
    assert.equal((await fail(3)).kind, 'parked')
    // What was parked is out of the way; redriven later, it runs although its place is past.
    assert.equal((await take(2, { deliveries: 4 })).kind, 'handled')
    assert.deepEqual(eventsOf(events, 'warning'), [])
    const [redriven] = await inbox.deadLetters.redrive({}, { effect: () => void handled.push(1) })
    assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'handled')
    assert.deepEqual(handled, [2, 1])
    assert.equal((await take(3)).kind, 'handled')
  },
)

onInbox(
  'a number that never comes is passed over after a while, by the first that waits',
  {
    ordered: { holeMs: 1 * MINUTE },
  },
  async ({ inbox, advance, events }) => {
    const { handled, take } = recorder(inbox)
    assert.equal((await take(1)).kind, 'handled')
    for (const sequence of [5, 4]) assert.equal((await take(sequence)).kind, 'waiting')
    for (let looks = 0; looks < 3; looks++) {
      await advance(20_000)
      assert.equal((await take(5, { deliveries: 2 + looks })).kind, 'waiting')
    }
    assert.equal((await take(4, { deliveries: 2 })).kind, 'handled')
    assert.equal((await take(5, { deliveries: 3 })).kind, 'handled')
    assert.deepEqual(
      eventsOf(events, 'warning').map(({ warning }) => warning.what === 'hole' && [warning.expected, warning.sequence]),
      [[2, 4]],
    )
    // It arrives after all: neither lost nor handled out of order without a report.
    const late = await take(2)
    assert.ok(late.kind === 'parked' && late.reason === 'out_of_order')
    assert.deepEqual(handled, [1, 4, 5])
    assert.equal(await inbox.deadLetters.count({ reason: 'out_of_order' }), 1)
  },
)

onInbox(
  'or the line stays closed, and what waits is parked',
  {
    ordered: { holeMs: 1 * MINUTE, onHole: 'park' },
  },
  async ({ inbox, advance, events }) => {
    const { handled, take } = recorder(inbox)
    for (let looks = 0; looks < 3; looks++) {
      assert.equal((await take(2)).kind, 'waiting')
      await advance(20_000)
    }
    const parked = await take(2, { deliveries: 2 })
    assert.ok(parked.kind === 'parked' && parked.reason === 'hole')
    assert.equal(eventsOf(events, 'warning').length, 1)
    assert.equal((await take(1)).kind, 'handled')
    const [redriven] = await inbox.deadLetters.redrive({}, { effect: () => void handled.push(2) })
    assert.ok(redriven?.result.kind === 'ran')
    assert.equal((await take(3)).kind, 'handled')
    assert.deepEqual(handled, [1, 2, 3])
  },
)

onInbox('a consumer may begin in the middle of a key', { ordered: { from: 'now' } }, async (stage) => {
  const { inbox, second, another, advance, events } = stage
  const { handled, take } = recorder(inbox)
  // Its first messages may have overtaken each other, also on their way to another process.
  const first = await take(42)
  assert.ok(first.kind === 'waiting' && first.delayMs < 1_000, 'it is asked again soon')
  const elsewhere = await second()
  assert.equal((await elsewhere.receive(numbered(41), () => void handled.push(41))).kind, 'waiting')
  await advance(3_000)
  assert.equal((await take(42, { deliveries: 2 })).kind, 'waiting')
  assert.equal((await take(41, { deliveries: 2 })).kind, 'handled')
  assert.equal((await take(42, { deliveries: 3 })).kind, 'handled')
  // From there on it is a line like any other: a hole is waited for, and what comes too late is kept.
  assert.equal((await take(44)).kind, 'waiting')
  await advance(60_000)
  assert.equal((await take(44, { deliveries: 2 })).kind, 'waiting')
  const late = await take(40)
  assert.ok(late.kind === 'parked' && late.reason === 'out_of_order')
  assert.equal((await take(43)).kind, 'handled')
  assert.equal((await take(44, { deliveries: 3 })).kind, 'handled')
  assert.deepEqual(handled, [41, 42, 43, 44])
  assert.deepEqual(eventsOf(events, 'warning'), [])
  // Number 1 begins a key at once; a later number waits for it.
  assert.equal((await inbox.receive(messageOf('n:1', { key: 'n', sequence: 1 }), () => {})).kind, 'handled')
  const patient = another({ consumer: 'patient', ordered: true })
  assert.equal((await patient.receive(numbered(42), () => {})).kind, 'waiting')
  await advance(60_000)
  assert.equal((await patient.receive(numbered(42), () => {})).kind, 'waiting')
})

onInbox(
  'a number that came, and was put off, is no hole',
  { ordered: { holeMs: 1 * MINUTE } },
  async ({ inbox, second, advance, events }) => {
    const { handled, take } = recorder(inbox)
    const putOff = (sequence: number, error: unknown, deliveries = 1) =>
      inbox.receive(numbered(sequence, { deliveries }), () => Promise.reject(error))
    // The effect postpones for longer than the inbox waits for a gap, also as the first message of a new key.
    for (const [sequence, error] of [
      [1, postpone('the bank is closed', { delayMs: 10 * MINUTE })],
      [2, notDone(new Error('not before'), { retryAfterMs: 10 * MINUTE })],
    ] as const) {
      assert.equal((await putOff(sequence, error)).kind, 'later')
      for (let minutes = 0; minutes < 10; minutes++) {
        assert.equal((await take(sequence + 1, { deliveries: 2 + minutes })).kind, 'waiting')
        await advance(1 * MINUTE)
      }
      assert.equal((await take(sequence, { deliveries: 2 })).kind, 'handled')
    }
    // Time without a consumer does not count as waiting: after a long stop both are redelivered, in any order.
    assert.equal((await take(4)).kind, 'waiting')
    await advance(24 * 60 * MINUTE)
    assert.equal((await take(4, { deliveries: 2 })).kind, 'waiting')
    const elsewhere = await second()
    assert.equal((await elsewhere.receive(numbered(3), () => void handled.push(3))).kind, 'handled')
    assert.deepEqual(handled, [1, 2, 3])
    assert.deepEqual(eventsOf(events, 'warning'), [])
  },
)

onInbox('a message that cannot be read keeps its place in the line', { ordered: true }, async ({ inbox }) => {
  const { handled, take } = recorder(inbox)
  assert.equal((await take(2, { body: '{' })).kind, 'waiting')
  assert.equal((await take(1)).kind, 'handled')
  assert.equal((await take(2, { body: '{' })).kind, 'parked')
  assert.equal((await take(3)).kind, 'handled')
  assert.deepEqual(handled, [1, 3])
})
