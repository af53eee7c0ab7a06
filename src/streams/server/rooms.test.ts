import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import type { StreamRoomOptions } from '../client/options.ts'
import { createStreamConnection } from '../client/stream-connection.ts'
import type { Entry } from '../protocol/protocol.ts'
import { closeCodes } from '../protocol/protocol.ts'
import type { StreamRegion } from './region.ts'
import { connectRaw, enter, fromStart, hello, openRegion, send, wired } from './test-peer.ts'

const quick = { reconnectBaseMs: 2, reconnectCapMs: 20 }

/** A connection, and what each of its rooms has received. */
function connect(region: StreamRegion) {
  const transport = wired(() => region)
  const problems: string[] = []
  const connection = createStreamConnection({ regions: ['eu'], transport, bounds: quick })
  return {
    transport,
    connection,
    problems,
    async room(name: string, options: Partial<StreamRoomOptions> = {}) {
      const seen: Entry[] = []
      const client = await connection.room(name, {
        mode: 'at-least-once',
        receiver: { message: (entry) => void seen.push(entry) },
        onProblem: (error) => void problems.push(`${name}: ${String(error)}`),
        ...options,
      })
      return { client, seen }
    },
  }
}

function inRoom(room: string, channel: number, client: string) {
  return { ...hello(client), room, channel }
}

test('several rooms share one connection, each with its own identity, order and position', async () => {
  const { region } = openRegion()
  const { connection, transport, room } = connect(region)
  const rooms = await Promise.all(['news', 'lobby', 'help'].map((name) => room(name)))
  for (const { client } of rooms) for (const n of [1, 2, 3]) await client.send(`${client.room} ${n}`)
  for (const { client, seen } of rooms) {
    await until(`all of ${client.room}`, () => seen.length === 3)
    assert.deepEqual(
      seen.map(({ body, n }) => [body, n]),
      [1, 2, 3].map((n) => [`${client.room} ${n}`, n]),
    )
  }
  assert.equal(new Set(rooms.map(({ client }) => client.identity.client)).size, 3)
  assert.deepEqual([transport.opened, region.sessions], [1, 3])
  await connection.stop()
  await until('all have left', () => region.sessions === 0)
  await region.stop()
})

test('a lost connection is opened again once, and every room continues from its own position', async () => {
  const { region } = openRegion()
  const { connection, transport, room } = connect(region)
  const [news, lobby] = [await room('news'), await room('lobby')]
  await (await news.client.send('one')).accepted
  await until('it came', () => news.seen.length === 1)
  transport.cut()
  const [two, first] = await Promise.all([news.client.send('two'), lobby.client.send('first')])
  await Promise.all([two.accepted, first.accepted])
  await until('both came', () => news.seen.length === 2 && lobby.seen.length === 1)
  assert.deepEqual([transport.opened, region.sessions], [2, 2])
  await connection.stop()
  await region.stop()
})

test('a room that is left, and one that is refused, disturb no other on the connection', async () => {
  const { region } = openRegion()
  const refusing: StreamRegion = {
    ...region,
    connect: (link) => region.connect(link, { authorize: ({ room }) => (room === 'secret' ? 'not for you' : null) }),
  }
  const { connection, transport, problems, room } = connect(refusing)
  const [lobby, secret, news] = [await room('lobby'), await room('secret'), await room('news')]
  await until('it was refused twice', () => problems.filter((each) => each.includes('not for you')).length > 1)
  await news.client.stop()
  await until('it has left', () => region.sessions < 3 && lobby.client.status === 'live')
  await (await lobby.client.send('still here')).accepted
  await until('it came', () => lobby.seen.length === 1)
  assert.deepEqual([...connection.rooms.keys()], ['lobby', 'secret'])
  assert.equal(transport.opened, 1)
  assert.ok(problems.every((each) => each.startsWith('secret')))
  const again = await room('news')
  await until('entered again', () => again.client.status === 'live')
  assert.equal(transport.opened, 1)
  assert.deepEqual(
    [secret.client.status, secret.client.refusal, lobby.client.refusal],
    ['connecting', 'not for you', null],
  )
  await connection.stop()
  await region.stop()
})

test('a room is entered once on a connection; odd names and options are refused at once', async () => {
  const { region } = openRegion()
  const { connection, room } = connect(region)
  await room('lobby')
  await assert.rejects(room('lobby'), /is in the room lobby already/)
  await assert.rejects(room('no such name'), /is not a name/)
  await assert.rejects(room('other', { transport: 1 } as never), /`transport` of room is unknown/)
  await connection.stop()
  await assert.rejects(room('news'), /was stopped/)
  await region.stop()
})

test("one room's fence, refusal or failure ends its own session only; what came too late for it is ignored", async () => {
  const { region } = openRegion()
  const peer = connectRaw(region)
  for (const [room, channel] of [
    ['room', 0],
    ['news', 1],
  ] as const) {
    peer.say(inRoom(room, channel, 'ada'))
    peer.say({ ...fromStart, channel })
  }
  await until('both are in', () => peer.frames.filter(({ kind }) => kind === 'resumed').length === 2)
  const newer = await enter(region, 'ada', 2)
  assert.equal((await peer.next('ended')).code, closeCodes.fenced)
  peer.say(send(1, 'too late'))
  peer.say({ kind: 'credit', taken: 0 })
  peer.say({ ...send(1, 'in time'), channel: 1 })
  await peer.next('ack')
  assert.deepEqual([peer.channels.at(-1), region.sessions], [1, 2])
  peer.say({ kind: 'leave', channel: 1 })
  await until('it has left', () => region.sessions === 1)
  assert.equal(newer.closed, null)
  await region.stop()
})

test('channels come in order and once, and a connection has a bounded number of rooms and of bytes', async () => {
  const { region } = openRegion({ bounds: { connectionRooms: 2, connectionBytes: 1_000 }, peers: ['us'] })
  const skips = connectRaw(region)
  skips.say(inRoom('room', 1, 'skips'))
  assert.equal((await until('closed', () => skips.closed)).code, closeCodes.badFrame)
  const peer = connectRaw(region)
  for (const channel of [0, 1, 2]) {
    peer.say(inRoom(`room-${channel}`, channel, 'ada'))
    peer.say({ ...fromStart, channel })
  }
  const { code, reason } = await peer.next('ended')
  assert.deepEqual([code, reason, peer.channels[0]], [closeCodes.notAllowed, 'a connection has at most 2 rooms', 2])
  await until('two are in', () => peer.frames.filter(({ kind }) => kind === 'resumed').length === 2)
  // The region lacks their causes, so that they wait: each session holds less than it may, the connection more.
  for (const [channel, cseq] of [
    [0, 1],
    [1, 1],
    [0, 2],
    [1, 2],
    [0, 3],
  ] as const) {
    peer.say({ kind: 'send', cseq, seen: { 'us.1': 9 }, replyTo: null, body: 'x'.repeat(300), channel })
  }
  assert.equal(peer.closed?.code, closeCodes.flooded)
  await region.stop()
})

test('the region may keep a room under another name than its client uses', async () => {
  const { region, log } = openRegion()
  const peer = connectRaw(region, { roomOf: (room) => `tenant.${room}` })
  peer.say(hello('ada'))
  peer.say(fromStart)
  peer.say(send(1, 'hi'))
  await peer.next('ack')
  assert.equal((await log.read('tenant.room', 0, { entries: 9, bytes: 9_999 })).length, 1)
  assert.equal((await log.read('room', 0, { entries: 9, bytes: 9_999 })).length, 0)
  await region.stop()
})
