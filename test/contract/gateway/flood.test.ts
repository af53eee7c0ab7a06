import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { allQuiet, askFrom, flood, QUIET } from '../../support/gateway/flood.ts'
import { openCounting, openGateway, openServer } from '../../support/gateway/world.ts'
import { openWire } from './wire.ts'

const MIB = 1_024 * 1_024

const post = (path: string, length: number, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${body}`

test('1 100 clients that send one byte of their bodies hold no connection of the upstream', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const sockets = flood(context, world.port, 1_100, post('/others', 1_000, 'x'))
  const ended = () => sockets.filter(({ received }) => received !== undefined).length
  await until('all of them are received, or were too slow', () => world.load.receiving + ended() === sockets.length)
  assert.equal(await askFrom(QUIET, world.port, 'GET', '/others'), 201)
  assert.equal(await askFrom(QUIET, world.port, 'POST', '/others', 'whole'), 201)
  assert.equal(await askFrom(QUIET, world.port, 'POST', '/things', '{}'), 201)
  assert.equal(upstream.heads, 3, 'nothing of the others was sent on')
  for (const socket of sockets) socket.destroy()
  await allQuiet(world)
})

test('half-sent bodies of one address take a quarter of the memory at most', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const sockets = flood(context, world.port, 100, post('/things', MIB, '{'))
  const refused = () => sockets.filter(({ received = '' }) => received.startsWith('HTTP/1.1 503')).length
  await until('each is received or refused', () => world.load.receiving + refused() === sockets.length)
  assert.deepEqual([world.load.bodyBytes / MIB, refused()], [64, 36])
  assert.equal(await askFrom(QUIET, world.port, 'POST', '/things', `"${'x'.repeat(MIB / 2)}"`), 201)
  for (const socket of sockets) socket.destroy()
  await allQuiet(world)
  assert.equal(upstream.heads, 1)
})

test('events have places of their own', async (context) => {
  const url = await openServer(context, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  })
  const world = await openGateway(context, url)
  const sockets = flood(context, world.port, 10, 'GET /events HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('all of them listen', () => world.load.streams === 10)
  assert.equal(world.load.underWay, 0)
  for (const socket of sockets) socket.destroy()
  await allQuiet(world)
})

test('a WebSocket has one for as long as it is open', async (context) => {
  const answer = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const wire = await openWire(context, () => ({ write: Buffer.from(answer), finally: 'stay' }))
  const world = await openGateway(context, wire.url)
  const offer = 'GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const sockets = flood(context, world.port, 5, offer)
  await until('all of them are open', () =>
    sockets.every(({ received }) => received?.startsWith('HTTP/1.1 101') === true),
  )
  assert.deepEqual([world.load.streams, world.load.underWay], [5, 0])
  for (const socket of sockets) socket.destroy()
  await allQuiet(world)
})

test('one half of a conversation is sent on, although little of it has come', async (context) => {
  const url = await openServer(context, (request, response) => {
    request.on('data', (piece: Buffer) => response.write(`heard ${String(piece)}`))
    request.on('end', () => response.end())
  })
  const world = await openGateway(context, url)
  const request = httpRequest({ port: world.port, path: '/talk', method: 'POST' })
  request.write('hello')
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const [first] = await once(answer, 'data')
  assert.equal(String(first), 'heard hello')
  request.end()
  await once(answer.resume(), 'end')
})
