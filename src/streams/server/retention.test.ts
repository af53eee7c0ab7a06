import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { createMemoryOrderLog } from '../log/memory-order.ts'
import type { OrderRow, RoomLog } from '../ports.ts'
import { type ClientFrame, closeCodes } from '../protocol/protocol.ts'
import { createStreamRegion } from './region.ts'
import { connectRaw, enter, hello, openRegion, send } from './test-peer.ts'

const WHOLE = { entries: 10_000, bytes: 1e9 }

async function filled(log: RoomLog, count: number): Promise<void> {
  await log.enter('room', { client: 'ada', epoch: 1, generation: 1, instance: 'i' })
  const message = { client: 'ada', epoch: 1, generation: 1, seen: {}, replyTo: null, body: 'x', digest: 'x' }
  const sends = Array.from({ length: count }, (_, index) => ({ ...message, cseq: index + 1 }))
  await log.write('room', { merged: [], sends })
}

test('a room that was closed loses its last messages in time, too', async () => {
  let nowMs = 0
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => nowMs })
  const { region } = openRegion({ log, bounds: { roomIdleMs: 20, pullEveryMs: 5, trimEveryMs: 5, retainMs: 1_000 } })
  const ada = await enter(region, 'ada')
  ada.say(send(1, 'a secret'))
  await ada.next('ack')
  ada.session.closed()
  let kept = 1
  const look = () => void log.read('room', 0, WHOLE).then((entries) => (kept = entries.length))
  nowMs = 60_000
  await until('it is gone', () => {
    look()
    return kept === 0
  })
  await region.stop()
})

test('a region has a limit of rooms: for one more it closes an empty one, or redirects the client', async () => {
  const { region } = openRegion({ bounds: { openRooms: 2, enterMs: 20 } })
  const come = (room: string, client: string) => {
    const peer = connectRaw(region)
    peer.say({ ...hello(client), room } as ClientFrame)
    return peer
  }
  const [ada, bob] = [come('first', 'ada'), come('second', 'bob')]
  await Promise.all([ada.next('welcome'), bob.next('welcome')])
  const refused = come('third', 'carol')
  assert.equal((await until('no room for her', () => refused.closed)).code, closeCodes.unavailable)
  await come('first', 'dan').next('welcome')
  bob.session.closed()
  let carol = refused
  await until('the empty one was closed for her', () => {
    if (carol.closed !== null) carol = come('third', 'carol')
    return carol.frames.some(({ kind }) => kind === 'welcome')
  })
  assert.equal(ada.closed, null)
  const back = come('second', 'bob')
  assert.equal((await until('his place is taken', () => back.closed)).code, closeCodes.unavailable)
  await region.stop()
})

test('a new holder of the final order gives a place to every kept message', async () => {
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  await filled(log, 3_000)
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 2_500, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const order = createMemoryOrderLog({ nowMs: () => performance.now() })
  // No other region has what was removed: this one does not wait for long.
  const { region } = openRegion({ log, order, bounds: { orderEveryMs: 5, orderLeaseMs: 20, dozeMs: 5 } })
  connectRaw(region).say(hello('bob'))
  let rows: readonly OrderRow[] = []
  await until('as many places as entries', () => {
    void order.read('room', 0, 10_000).then((read) => (rows = read))
    return rows.length >= 2_500
  })
  assert.deepEqual([rows.length, rows[0]?.cseq, rows.at(-1)?.cseq], [2_500, 501, 3_000])
  await region.stop()
})

for (const when of ['before', 'while'] as const) {
  test(`a region that adopted an image ${when} it holds the final order gives way to one that has what it lacks`, async () => {
    const nowMs = () => performance.now()
    const [eu, us] = [createMemoryRoomLog({ region: 'eu', nowMs }), createMemoryRoomLog({ region: 'us', nowMs })]
    const order = createMemoryOrderLog({ nowMs })
    const bounds = { orderEveryMs: 5, orderLeaseMs: 300 }
    const here = openRegion({ log: eu, order, bounds }).region
    if (when === 'while') {
      const bob = await enter(here, 'bob')
      bob.say(send(1, 'first'))
      await until('the lease is held here', async () => (await order.read('room', 0, 1)).length === 1)
      const merged = await eu.read('room', 0, WHOLE)
      await us.write('room', { merged, sends: [] })
    }
    await filled(us, 1)
    await eu.adopt('room', await us.image('room'))
    await eu.enter('room', { client: 'eve', epoch: 1, generation: 1, instance: 'i' })
    const cause = (await us.read('room', 0, WHOLE)).at(-1)
    assert.ok(cause !== undefined)
    const effect = { client: 'eve', epoch: 1, cseq: 1, generation: 1, replyTo: null, body: 'y', digest: 'y' }
    const sent = { ...effect, seen: { [cause.log]: cause.n } }
    await us.write('room', { merged: (await eu.write('room', { merged: [], sends: [sent] })).stored, sends: [] })
    connectRaw(here).say(hello('dan'))
    const there = createStreamRegion({ region: 'us', log: us, order, bounds })
    connectRaw(there).say(hello('carol'))
    const rows = await until('the effect has its place', async () => {
      const read = await order.read('room', 0, 10)
      return read.some(({ client }) => client === 'eve') && read
    })
    assert.deepEqual(
      rows.map(({ client }) => client),
      [...(when === 'while' ? ['bob'] : []), 'ada', 'eve'],
    )
    await Promise.all([here.stop(), there.stop()])
  })
}

test('a message removed before it has a place gets none from a new holder, which would put it behind its effects', async () => {
  let nowMs = 0
  const us = createMemoryRoomLog({ region: 'us', nowMs: () => nowMs })
  await filled(us, 2)
  const there = await us.read('room', 0, WHOLE)
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => nowMs })
  await log.write('room', { merged: there, sends: [] })
  await filled(log, 3)
  await log.trim('room', { olderThanMs: 1e9, mostEntries: 1, clientsMs: 1e9, publishedMs: 1e9, mostPublished: 1e6 })
  const order = createMemoryOrderLog({ nowMs: () => nowMs })
  // No other region has it: this one does not wait for long.
  const { region } = openRegion({ log, order, bounds: { orderEveryMs: 5, orderLeaseMs: 20, dozeMs: 5 } })
  connectRaw(region).say(hello('bob'))
  let rows: readonly OrderRow[] = []
  await until('what is kept has its place', () => {
    void order.read('room', 0, 10_000).then((read) => (rows = read))
    return rows.length > 0
  })
  await region.stop()
  nowMs = 1e9
  const claimed = await order.claim('room', 'successor', 1_000)
  const [first] = there
  assert.ok(claimed.kind === 'held' && first !== undefined)
  assert.equal(claimed.position[first.log], 2)
})
