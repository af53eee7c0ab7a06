import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'
import { openWire, raw } from './wire.ts'

const offer = (first: string, more = '') =>
  `${first} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n${more}`
const handshake =
  'GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
const SWITCH = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')

test('a request that offers another protocol is answered as if it had not: a key is forwarded once', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  for (const [key, body] of Object.entries({ empty: '', full: '{"amount":1}' })) {
    const more = `Idempotency-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const [first, retry] = [
      await raw(world.port, offer('POST /things', more)),
      await raw(world.port, offer('POST /things', more)),
    ]
    assert.match(first, new RegExp(`^HTTP/1\\.1 201 .*{"got":${body.length}}`, 's'))
    assert.match(retry, /^HTTP\/1\.1 201 .*idempotent-replayed: true/is)
  }
  assert.deepEqual(
    upstream.seen.map(({ body }) => body),
    ['', '{"amount":1}'],
  )
  assert.equal(upstream.seen[0]?.headers.upgrade, undefined)
  await until('every attempt has an event', () => world.events.length >= 4)
  assert.deepEqual(
    world.events.flatMap((event) => (event.kind === 'access' ? [event.decision] : [])),
    ['first', 'dedup_replay', 'first', 'dedup_replay'],
  )
  assert.match(await raw(world.port, offer('GET /others', '\r\n')), /^HTTP\/1\.1 201 /)
  const own = handshake.replace('/chat', '/.onceonly/live').replace('Connection: ', 'Connection: close, ')
  assert.match(await raw(world.port, own), /"live":true/)
  assert.equal(upstream.heads, 3, 'what is asked of the gateway itself is not passed on')
})

async function idleConnection(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET /.onceonly/live HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'data')
  return socket
}

test('a client that resets the connection it wanted to upgrade affects no other client', async (context) => {
  const upstream = await openCounting(context)
  const draining = await openGateway(context, upstream.url)
  const alone = await openGateway(context, upstream.url, [{ ...things, upstream: 'one' }], {
    upstreams: { one: upstream.url },
  })
  for (const world of [alone, draining]) {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => idleConnection(world.port)))
    if (world === draining) void world.stop()
    for (const socket of sockets) socket.write(handshake, () => socket.resetAndDestroy())
    await Promise.all(sockets.map((socket) => once(socket, 'close')))
  }
  await draining.stop()
  assert.equal((await alone.ask()).status, 201)
})

test('an upstream that switches protocols without an offer counts as broken', async (context) => {
  const wire = await openWire(context, () => ({ write: SWITCH, finally: 'stay' }))
  const world = await openGateway(context, wire.url)
  const first = await world.ask()
  assert.deepEqual([first.status, first.problem], [502, 'upstream-broken'])
  assert.equal((await world.ask()).problem, 'outcome-unknown')
  assert.equal(wire.requests, 1)
  for (const method of ['GET', 'POST']) {
    const passed = await world.ask({ method, path: '/others' })
    assert.deepEqual([passed.status, passed.problem], [502, 'upstream-failed'])
  }
})

/** The upstream waits for longer than this, and a busy machine connects to itself in less. */
const CONNECT_MS = 1_500

test('a handshake may take longer than a connection', async (context) => {
  const upstream = await openCounting(context, async (_request, response) => {
    await sleep(1.2 * CONNECT_MS)
    response.writeHead(426).end('later')
  })
  const world = await openGateway(context, upstream.url, [things], { timeouts: { connectMs: CONNECT_MS } })
  assert.match(await raw(world.port, handshake), /^HTTP\/1\.1 426 /)
})
