import assert from 'node:assert/strict'
import type { RelayEvent } from 'onceonly/outbox'
import { createLeases } from '../../../../src/events/outbox/leases.ts'
import { createRows } from '../../../../src/events/outbox/rows.ts'
import { createRuntime } from '../../../../src/runtime/runtime.ts'
import { until } from '../../../../src/testing/until.ts'
import { hurriedRuntime, many, onOutbox, sequences } from '../../../support/events/outbox/ground.ts'

const held = (events: readonly RelayEvent[]) => events.findLast((event) => event.kind === 'balanced')?.partitions ?? 0

onOutbox('relays share the partitions evenly, and one that ends leaves its own to the others', async (ground) => {
  const { outbox } = ground
  const events = many(3, (): RelayEvent[] => [])
  // Leases that a busy machine does not lose, and rounds that come often.
  const start = (n: number) =>
    ground.relay({ leaseMs: 60_000, runtime: hurriedRuntime(), on: (event) => events[n]?.push(event) })
  const first = start(0)
  await until('the first relay holds everything', () => held(events[0] ?? []) === 64)
  start(1)
  start(2)
  await until(
    'three relays share the partitions evenly',
    () => events.map(held),
    (shares) => shares.reduce((a, b) => a + b) === 64 && Math.max(...shares) - Math.min(...shares) <= 2,
  )
  assert.equal((await outbox.status()).relays, 3)
  await first.stop()
  await until(
    'the two that are left hold a half each',
    () => events.slice(1).map(held),
    (shares) => shares.every((share) => share === 32),
  )
  const status = await outbox.status()
  assert.deepEqual([status.relays, status.unheldPartitions], [2, 0])
})

onOutbox('a relay that lost its lease marks nothing, counts nothing and parks nothing', async (ground) => {
  const { desk, store, events } = ground
  const presented = new Set<string>()
  const go = Promise.withResolvers<void>()
  desk.before = async (messages) => {
    for (const { id } of messages) presented.add(id)
    await go.promise
  }
  desk.verdict = ({ key }) => (key === 'bad' ? { kind: 'refused', reason: 'no' } : null)
  await ground.add({ topic: 'orders.paid', key: 'good', body: 1 })
  await ground.add({ topic: 'orders.paid', key: 'bad', body: 1 })
  const runtime = hurriedRuntime()
  // On a hurried clock: the broker is not taken for silent while the test takes the lease away.
  ground.relay({ leaseMs: 3_600_000, publishMs: 1_800_000, maxAttempts: 1, runtime })
  await until('the broker has both messages', () => presented.size === 2)
  // As another relay does that found the lease past its end.
  await store.sql.query(
    `INSERT INTO onceonly_outbox_relays (id, lease_until) VALUES ('other', ${store.sql.now} + 60000)`,
  )
  await store.sql.query(`UPDATE onceonly_outbox_partitions SET fence = fence + 1, holder = 'other'`)
  go.resolve()
  await until('the relay knows that it lost its lease', () => events.some(({ kind }) => kind === 'lease_lost'))
  const { rests } = runtime
  await until('its lanes have looked again and again', () => runtime.rests >= rests + 20)
  assert.equal(desk.taken.length, 1)
  assert.equal(await ground.pending(), 2)
  assert.ok(!events.some(({ kind }) => kind === 'published' || kind === 'parked'))
  assert.equal(await ground.outbox.deadLetters.count(), 0)
})

onOutbox('what the broker confirmed too late frees no key that another relay has parked since', async (ground) => {
  const { desk, store, outbox } = ground
  desk.verdict = () => ({ kind: 'refused', reason: 'no' })
  await ground.add({ topic: 'orders.paid', key: 'a', body: 1 })
  const relay = ground.relay()
  await until('the message was refused', async () => (await outbox.status()).failing === 1)
  await relay.stop()
  // As two relays do, the first of which was paused while the broker confirmed its batch.
  const takeAll = async () => {
    const text = 'UPDATE onceonly_outbox_partitions SET fence = fence + 1 RETURNING partition, fence'
    const taken = await store.sql.query<{ partition: unknown; fence: unknown }>(text)
    return taken.map(({ partition, fence }) => ({ partition: Number(partition), fence: Number(fence) }))
  }
  const rows = createRows(store)
  const paused = await takeAll()
  await ground.place.advance(60_000)
  const { rows: found } = await rows.next(paused.map(({ partition }) => ({ partition, rows: 10 })))
  const [row] = found
  assert.ok(row !== undefined && row.attempts !== 0)
  const refusal = { row, reason: 'no', attempts: 20, retryAfterMs: null }
  assert.equal((await rows.fail(await takeAll(), [refusal])).length, 1)
  assert.equal(await rows.mark(paused, found), 0)
  const { parkedKeys, deadLetters } = await outbox.status()
  assert.deepEqual([parkedKeys, deadLetters], [1, 1])
})

onOutbox('several relays under load, one of them stopped, one of them slow: everything in order', async (ground) => {
  const { outbox, inTx, desk } = ground
  let slow = 0
  desk.before = async () => {
    slow += 1
    // Only so that batches of several relays overlap.
    if (slow % 5 === 0) await new Promise((resolve) => void setTimeout(resolve, 40))
  }
  const relays = many(3, () => ground.relay({ leaseMs: 2_000 }))
  for (let n = 0; n < 40; n++) {
    await inTx(async (tx) => {
      for (let m = 0; m < 25; m++) await outbox.add(tx, { topic: 'orders.paid', key: `k-${m}`, body: n })
    })
    if (n === 20) await relays[0]?.stop()
  }
  await ground.drained()
  const found = sequences(desk.taken)
  assert.equal(found.size, 25)
  for (const [key, numbers] of found)
    assert.deepEqual(
      numbers,
      many(40, (n) => n + 1),
      key,
    )
})

onOutbox(
  'ids are forgotten after their time; counters only when asked to, and never with a message left',
  async (ground) => {
    const { outbox, place, store, desk } = ground
    const message = { id: 'x', topic: 'orders.paid', key: 'a', body: 1 }
    const count = async (table: string) => {
      const [row] = await store.sql.query<{ n: unknown }>(`SELECT count(*) AS n FROM onceonly_outbox_${table}`)
      return Number(row?.n)
    }
    const relay = ground.relay()
    await ground.add(message)
    await ground.drained()
    desk.verdict = ({ key }) => (key === 'parked' ? { kind: 'refused', reason: 'no' } : null)
    await ground.add({ ...message, id: 'y', key: 'parked' })
    await place.advance(8 * 86_400_000)
    assert.equal(await relay.sweep(), 2)
    assert.deepEqual([await count('ids'), await count('keys')], [0, 2])
    await relay.stop()

    const forgetful = ground.relay({ forgetKeysMs: 86_400_000, maxAttempts: 1 })
    await until('the refused message is parked', async () => (await outbox.deadLetters.count()) === 1)
    await ground.add({ ...message, id: 'z', key: 'fresh' })
    await ground.drained()
    await forgetful.sweep()
    // The idle one is gone; the one with a dead letter and the fresh one are not.
    assert.equal(await count('keys'), 2)
    await ground.add({ ...message, id: 'again' })
    await until('the key begins anew', () => desk.taken.some(({ id, sequence }) => id === 'again' && sequence === 1))
  },
)

onOutbox('what a relay is about to give back, a second look at its leases does not bring back', async ({ store }) => {
  const [first, second] = many(2, (n) =>
    createLeases(store.sql, { runtime: createRuntime(), relay: `relay-${n}`, leaseMs: 60_000 }),
  )
  assert.ok(first !== undefined && second !== undefined)
  await first.round()
  assert.equal(first.current(0).length, 64)
  assert.equal((await second.round()).hungry, true)
  const { surplus, relays } = await first.round()
  assert.deepEqual([relays, surplus.length, first.current(0).length], [2, 32, 32])
  await first.check()
  assert.equal(first.current(0).length, 32)
  await second.round()
  assert.equal(second.current(0).length, 0)
  await first.giveBack(surplus)
  await second.round()
  assert.equal(second.current(0).length, 32)
  // A fence grows with every grant, so that the previous holder of the partition cannot write there.
  const before = new Map(surplus.map(({ partition, fence }) => [partition, fence]))
  for (const { partition, fence } of second.current(0)) assert.ok(fence > (before.get(partition) ?? Infinity))
})

onOutbox(
  'a jump of the clock ends leases behind the back of their relays: no partition is left alone',
  async (ground) => {
    const [first, second] = many(2, (n) =>
      createLeases(ground.store.sql, { runtime: createRuntime(), relay: `relay-${n}`, leaseMs: 60_000 }),
    )
    assert.ok(first !== undefined && second !== undefined)
    /** Until both have their share, or for as many rounds as that may take. */
    const share = async () => {
      for (let round = 0; round < 4; round++) {
        for (const leases of [first, second]) await leases.giveBack((await leases.round()).surplus)
      }
    }
    await share()
    assert.deepEqual([first.current(0).length, second.current(0).length], [32, 32])
    await ground.place.advance(90_000)
    await share()
    // What they hold, the store says as well.
    for (const leases of [first, second]) await leases.check()
    const owned = new Set([first, second].flatMap((leases) => leases.current(0).map(({ partition }) => partition)))
    assert.deepEqual([first.current(0).length, second.current(0).length, owned.size], [32, 32, 64])
  },
)
