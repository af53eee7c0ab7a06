import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { onEverySqlStore } from '../../support/streams/stores.ts'

const call = { timeoutMs: 60_000 }
const MINUTE_MS = 60_000
const WHOLE = { entries: 1_000, bytes: 1_000_000 }

onEverySqlStore('a region that fell too far behind continues from the snapshot of a peer', async ({ store }) => {
  const eu = createSqlRoomLog({ store, region: 'eu' })
  const us = createSqlRoomLog({ store, region: 'us' })
  await us.enter('room', { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
  const message = { client: 'ann', epoch: 1, generation: 1, seen: {}, replyTo: null, body: 'hello', digest: 'hello' }
  for (let cseq = 1; cseq <= 4; cseq++) await us.write('room', { merged: [], sends: [{ ...message, cseq }] })
  await us.trim('room', {
    olderThanMs: MINUTE_MS,
    mostEntries: 1,
    clientsMs: MINUTE_MS,
    publishedMs: MINUTE_MS,
    mostPublished: 1e6,
  })
  const usLog = (await us.open('room')).log
  assert.deepEqual(await us.find('room', {}), { kind: 'expired', removed: { [usLog]: 3 } })
  await eu.adopt('room', await us.image('room'))
  const { position, log } = await eu.open('room')
  assert.deepEqual(position, { [usLog]: 4 })
  assert.equal((await eu.sender('room', 'ann', 1))?.floor, 5)
  assert.deepEqual(await eu.find('room', {}), { kind: 'expired', removed: { [usLog]: 4 } })
  assert.deepEqual(await eu.find('room', position), { kind: 'found', at: 0 })
  await eu.enter('room', { client: 'ann', epoch: 1, generation: 2, instance: 'tab' })
  const again = await eu.write('room', {
    merged: [],
    sends: [4, 5].map((cseq) => ({ ...message, generation: 2, cseq })),
  })
  assert.deepEqual(again.results, [
    { kind: 'accepted', place: null, duplicate: true },
    { kind: 'accepted', place: { log, n: 1 }, duplicate: false },
  ])
})

onEverySqlStore('writes of many rooms share a commit, and each room counts for itself', async ({ store, another }) => {
  const first = createSqlRoomLog({ store, region: 'eu' })
  const second = createSqlRoomLog({ store: another(), region: 'eu' })
  const rooms = Array.from({ length: 5 }, (_, n) => `room-${n}`)
  for (const room of rooms) {
    for (let n = 0; n < 8; n++) {
      await first.enter(room, { client: `client-${n}`, epoch: 1, generation: 1, instance: 'tab' })
    }
  }
  const message = { epoch: 1, cseq: 1, generation: 1, seen: {}, replyTo: null, body: 'hello', digest: 'hello' }
  await Promise.all(
    rooms.flatMap((room) =>
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? first : second).write(room, { merged: [], sends: [{ ...message, client: `client-${n}` }] }),
      ),
    ),
  )
  for (const room of rooms) {
    const entries = await first.read(room, 0, WHOLE)
    assert.deepEqual(
      entries.map(({ n }) => n),
      [1, 2, 3, 4, 5, 6, 7, 8],
    )
    assert.deepEqual(new Set(entries.map(({ client }) => client)).size, 8)
  }
})

onEverySqlStore('the final order has no gap and no second copy, and only one holder adds to it', async (given) => {
  const { store, another } = given
  const [eu, us] = [createSqlOrderLog({ store }), createSqlOrderLog({ store: another() })]
  const one = { client: 'ann', epoch: 1, cseq: 1 }
  const two = { client: 'bob', epoch: 1, cseq: 1 }
  const three = { client: 'ann', epoch: 1, cseq: 2 }
  const held = await eu.claim('room', 'eu', MINUTE_MS)
  assert.deepEqual(held, { kind: 'held', fence: 1, position: {}, head: 0 })
  assert.deepEqual(await us.claim('room', 'us', MINUTE_MS), { kind: 'taken' })
  const batch = { fence: 1, identities: [one, two], position: { 'eu.1': 2 } }
  assert.deepEqual(await eu.append('room', batch), { kind: 'appended', head: 2 })
  assert.deepEqual(await eu.append('room', batch), { kind: 'appended', head: 2 })
  await store.clock.advance(2 * MINUTE_MS, call)
  const taken = await us.claim('room', 'us', MINUTE_MS)
  assert.deepEqual(taken, { kind: 'held', fence: 2, position: { 'eu.1': 2 }, head: 2 })
  assert.deepEqual(await eu.append('room', { ...batch, identities: [three] }), { kind: 'lost' })
  const later = { fence: 2, identities: [two, three, three], position: { 'us.1': 1 } }
  assert.deepEqual(await us.append('room', later), { kind: 'appended', head: 3 })
  assert.deepEqual(await eu.read('room', 1, 10), [
    { g: 2, ...two },
    { g: 3, ...three },
  ])
  const none = { client: 'cid', epoch: 1, cseq: 1 }
  const places = await us.places('room', [three, none, one])
  assert.deepEqual(
    places.toSorted((a, b) => a.g - b.g),
    [
      { g: 1, ...one },
      { g: 3, ...three },
    ],
  )
  assert.deepEqual(await us.places('another', [one]), [])
  // A lease of no time is given up.
  await us.claim('room', 'us', 0)
  const next = await eu.claim('room', 'eu', MINUTE_MS)
  assert.deepEqual(next, { kind: 'held', fence: 3, position: { 'eu.1': 2, 'us.1': 1 }, head: 3 })
})

onEverySqlStore('only the room that was written to is woken', async ({ store, another }) => {
  const writing = createSqlRoomLog({ store, region: 'eu' })
  const listening = createSqlRoomLog({ store: another(), region: 'eu' })
  const woken = { busy: 0, quiet: 0 }
  const names = ['busy', 'quiet'] as const
  for (const room of names) {
    await writing.enter(room, { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
    await listening.open(room)
  }
  const watches = names.map((room) => listening.listen(room, () => void (woken[room] += 1)))
  const message = { client: 'ann', epoch: 1, generation: 1, seen: {}, replyTo: null, body: 'hello', digest: 'hello' }
  let cseq = 0
  let quiet = 0
  for (const round of [1, 2, 3]) {
    const before = woken.busy
    // A wake may be lost while the listener connects: then one of the next messages brings one.
    await until('the busy room is woken', async () => {
      cseq += 1
      await writing.write('busy', { merged: [], sends: [{ ...message, cseq }] })
      await pause(50)
      return woken.busy > before
    })
    if (round === 1) quiet = woken.quiet
  }
  // Once at the most, with the first look.
  assert.equal(woken.quiet, quiet)
  for (const watch of watches) watch.stop()
})

onEverySqlStore('expired entries are removed, however many, also from a room without visitors', async ({ store }) => {
  const log = createSqlRoomLog({ store, region: 'eu' })
  const order = createSqlOrderLog({ store })
  const identities = Array.from({ length: 2_500 }, (_, index) => ({ client: 'ann', epoch: 1, cseq: index + 1 }))
  await log.enter('room', { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
  const message = { generation: 1, seen: {}, replyTo: null, body: 'hello', digest: 'hello' }
  await log.write('room', { merged: [], sends: identities.map((identity) => ({ ...message, ...identity })) })
  await order.claim('room', 'eu', MINUTE_MS)
  await order.append('room', { fence: 1, identities, position: {} })
  const left = async () => [
    (await log.read('room', 0, { entries: 3_000, bytes: 1e9 })).length,
    (await order.read('room', 0, 3_000)).length,
    (await log.sender('room', 'ann', 1))?.floor ?? null,
  ]
  assert.deepEqual(await left(), [2_500, 2_500, 2_501])
  const region = createStreamRegion({ region: 'eu', log, order, bounds: { trimEveryMs: 10 } })
  const MINUTES_OF_A_DAY = 24 * 60
  for (const [minutes, then] of [
    [11, [0, 2_500, 2_501]],
    [21, [0, 0, 2_501]],
    [8 * MINUTES_OF_A_DAY, [0, 0, null]],
  ] as const) {
    await store.clock.advance(minutes * MINUTE_MS, call)
    await until(`only ${then} are left`, left, (seen) => String(seen) === String(then))
  }
  await region.stop()
})

onEverySqlStore(
  'of many concurrent claims of a lapsed lease one gets it, time after time',
  async ({ store, another }) => {
    const [eu, us] = [createSqlOrderLog({ store }), createSqlOrderLog({ store: another() })]
    for (let fence = 1; fence <= 5; fence++) {
      const asked = Array.from({ length: 6 }, (_, n) => (n % 2 ? eu : us).claim('room', `${fence}-${n}`, MINUTE_MS))
      const held = (await Promise.all(asked)).filter(({ kind }) => kind === 'held')
      assert.deepEqual(held, [{ kind: 'held', fence, position: {}, head: 0 }])
      await store.clock.advance(2 * MINUTE_MS, call)
    }
  },
)

onEverySqlStore(
  'the tables themselves refuse a second entry at a place, and a second place for a message',
  async ({ store }) => {
    const log = createSqlRoomLog({ store, region: 'eu' })
    const order = createSqlOrderLog({ store })
    await log.enter('room', { client: 'ann', epoch: 1, generation: 1, instance: 'tab' })
    const identity = { client: 'ann', epoch: 1, cseq: 1 }
    const message = { ...identity, generation: 1, seen: {}, replyTo: null, body: 'hello', digest: 'hello' }
    await log.write('room', { merged: [], sends: [message] })
    await order.claim('room', 'eu', MINUTE_MS)
    await order.append('room', { fence: 1, identities: [identity], position: {} })
    const again = [
      [
        'entries',
        'region, room, at',
        'region, room, at + 1',
        'log, n, client, epoch, cseq, copy, digest, accepted_at, stored_at, bytes, rest',
      ],
      [
        'entries',
        'n',
        'n + 1',
        'region, room, at, log, client, epoch, cseq, copy, digest, accepted_at, stored_at, bytes, rest',
      ],
      ['order_rows', 'g', 'g + 1', 'room, client, epoch, cseq, added_at'],
      ['order_rows', 'cseq', 'cseq + 1', 'room, g, client, epoch, added_at'],
    ]
    for (const [table, other, changed, same] of again) {
      const copy = `insert into onceonly_stream_${table} (${other}, ${same}) select ${changed}, ${same} from onceonly_stream_${table}`
      await assert.rejects(store.sql.query(copy, []), /unique/i, copy)
    }
  },
)
