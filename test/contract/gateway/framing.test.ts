import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { askBytes, assertReadAlike, framingCases } from '../../support/gateway/framing.ts'
import { openCounting, openGateway } from '../../support/gateway/world.ts'

test('whatever frames a request, its upstream reads the same one, or none at all', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  let number = 0
  for (const one of framingCases()) {
    await assertReadAlike(world, upstream, one)
    number++
  }
  assert.ok(number >= 400, String(number))
})

test('a handshake that declares a body is refused, and nothing of it is forwarded', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const handshake = [
    'GET /chat HTTP/1.1',
    'Host: x',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZQ==',
  ]
  for (const declared of ['Content-Length: 60', 'Transfer-Encoding: chunked']) {
    const answer = await askBytes(world.port, `${[...handshake, declared].join('\r\n')}\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 400 /, declared)
  }
  assert.equal(upstream.heads, 0)
})

test('a handshake has a connection of its own, which no other request gets', async (context) => {
  const ports = new Map<string, number | undefined>()
  const upstream = await openCounting(context, (request, response) => {
    ports.set(request.url ?? '', request.socket.remotePort)
    response.writeHead(200).end()
  })
  const world = await openGateway(context, upstream.url)
  await world.ask({ method: 'GET', path: '/before' })
  const handshake =
    'GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n\r\n'
  assert.match(await askBytes(world.port, handshake), /^HTTP\/1\.1 200 /)
  await world.ask({ method: 'GET', path: '/after' })
  await until('all have come', () => ports.size === 3)
  assert.notEqual(ports.get('/chat'), ports.get('/before'))
  assert.notEqual(ports.get('/chat'), ports.get('/after'))
})

test('what a client says of its own address is not believed, and no header is hidden from a rule', async (context) => {
  const upstream = await openCounting(context)
  const rule = {
    method: 'POST',
    path: '/things',
    key: 'required',
    replay: 'trusted',
    caller: { header: 'x-account' },
  } as const
  const world = await openGateway(context, upstream.url, [rule])
  const send = (more: string) =>
    askBytes(
      world.port,
      `POST /things HTTP/1.1\r\nHost: x\r\nIdempotency-Key: hidden\r\nX-Real-IP: 10.1.2.3\r\nContent-Length: 2\r\n${more}\r\n\r\n{}`,
    )
  assert.match(await send('X-Account: ann\r\nConnection: keep-alive'), /^HTTP\/1\.1 201 /)
  assert.equal(upstream.seen[0]?.headers['x-real-ip'], undefined)
  assert.equal(upstream.seen[0]?.headers['x-account'], 'ann')
  const hidden = await send('X-Account: ann\r\nConnection: keep-alive, X-Account')
  assert.match(hidden, /^HTTP\/1\.1 400 /, 'a header that belongs to the connection names no caller')
  assert.equal(upstream.heads, 1)
})
