import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createStreamConnection, createWebSocketTransport } from 'onceonly/stream'
import { createMemoryRoomLog, createSocketServer, createStreamRegion, type StreamRegion } from 'onceonly/stream/server'
import { WebSocketServer } from 'ws'
import { until } from '../../../src/testing/until.ts'

const quick = { reconnectBaseMs: 5, reconnectCapMs: 20 }
const receiver = { message: () => {} }
const options = { receiver, mode: 'at-least-once' } as const

/** A server whose users are named by their tokens, and the rooms that each of them may not enter. */
async function openServer(context: TestContext) {
  const closed = new Set<string>()
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const region = createStreamRegion({ region: 'eu', log })
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const tokens: (string | null)[] = []
  const sockets = createSocketServer<string>({
    server,
    path: '/socket',
    WebSocketServer,
    async admit(_request, token) {
      tokens.push(token)
      if (token === null || token === 'old') return { kind: 'refused', status: 401, reason: 'Unknown token.' }
      return { kind: 'admitted', who: token }
    },
    begin: (link, user) =>
      region.connect(link, {
        user,
        authorize: ({ room }) => (closed.has(`${user}/${room}`) ? 'No access.' : null),
      }),
  })
  context.after(async () => {
    await sockets.stop()
    await region.stop()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  async function enter(token: () => string | null | Promise<string | null>, rooms: readonly string[]) {
    const transport = createWebSocketTransport({ url: () => `ws://127.0.0.1:${port}/socket`, token })
    const connection = createStreamConnection({ regions: ['eu'], transport, bounds: quick })
    context.after(() => connection.stop())
    return Promise.all(rooms.map((room) => connection.room(room, options)))
  }
  return { region, closed, tokens, enter }
}

test('a token may take its time, and is asked for again when the server refuses it or when it fails', async (context) => {
  const { tokens, enter } = await openServer(context)
  const answers = [Promise.reject(new Error('no network')), Promise.resolve('old'), Promise.resolve('ann')]
  for (const answer of answers) answer.catch(() => {})
  const [lobby] = await enter(() => answers.shift() ?? 'ann', ['lobby'])
  await until('she is in', () => lobby?.status === 'live')
  // The WebSocket of Node repeats a handshake that was answered with 401.
  assert.deepEqual([...new Set(tokens)], ['old', 'ann'])
  assert.equal(answers.length, 0)
})

test('a client that is stopped while it waits for its token never connects', async (context) => {
  const { tokens, enter } = await openServer(context)
  const token = Promise.withResolvers<string>()
  const [lobby] = await enter(() => token.promise, ['lobby'])
  await lobby?.stop()
  token.resolve('ann')
  const [other] = await enter(() => 'bob', ['lobby'])
  await until('another one is in', () => other?.status === 'live')
  assert.deepEqual(tokens, ['bob'])
})

test('a user who is kicked leaves all rooms, and comes back where the rights allow it', async (context) => {
  const { region, closed, enter } = await openServer(context)
  const [lobby, board] = await enter(() => 'ann', ['lobby', 'board'])
  const [other] = await enter(async () => 'bob', ['lobby'])
  assert.ok(lobby !== undefined && board !== undefined && other !== undefined)
  await until('all are in', () => [lobby, board, other].every(({ status }) => status === 'live'))
  closed.add('ann/board')
  assert.equal(region.kick({ user: 'ann' }, 'please sign in again'), 2)
  await until('the board is closed to her', () => board.refusal === 'No access.')
  await until('she is back in the lobby', () => lobby.status === 'live')
  await (await lobby.send('I am back')).accepted
  assert.equal(other.status, 'live')
  assert.equal(region.kick({ client: other.identity.client, room: 'board' }), 0)
  assert.equal(region.kick({ client: other.identity.client, room: 'lobby' }), 1)
  await until('he is back', () => other.status === 'live')
  refusesOddChoices(region)
})

test('when rights change, a review ends just the sessions that have lost them', async (context) => {
  const { region, closed, enter } = await openServer(context)
  const [lobby, board] = await enter(() => 'ann', ['lobby', 'board'])
  const [other] = await enter(() => 'bob', ['board'])
  assert.ok(lobby !== undefined && board !== undefined && other !== undefined)
  await until('all are in', () => [lobby, board, other].every(({ status }) => status === 'live'))
  assert.equal(await region.review(), 0)
  closed.add('ann/board')
  assert.equal(await region.review({ room: 'lobby' }), 0)
  assert.equal(await region.review({ user: 'ann' }), 1)
  await until('she lost it', () => board.refusal === 'No access.')
  assert.deepEqual([lobby.status, other.status], ['live', 'live'])
  await (await other.send('she left')).accepted
  closed.clear()
  await until('she may enter again', () => board.status === 'live' && board.refusal === null)
})

function refusesOddChoices(region: StreamRegion): void {
  assert.throws(() => region.kick({}), { code: 'bad_option' })
  assert.throws(() => region.kick({ user: 'ann' }, 'x'.repeat(121)), { code: 'bad_option' })
  assert.throws(() => region.kick({ name: 'ann' } as never), { code: 'bad_option' })
}
