import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { ask } from '../../support/gateway/ask.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, openGateway, openServer, things } from '../../support/gateway/world.ts'
import { digestOfLarge, download, growthMib, largeService, upload } from './large.ts'

test('safe methods and everything without a rule or a key pass as they are', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...things, key: 'optional' }])
  for (const one of [{ method: 'GET' }, { path: '/others' }, { key: null }, { method: 'DELETE', path: '/things/9' }]) {
    assert.equal((await world.ask(one)).replayed, false)
    assert.equal((await world.ask(one)).replayed, false)
  }
  assert.equal(upstream.heads, 8)
  assert.equal((await world.ledger.list({})).rows.length, 0)
})

test('headers of the connection stay behind, those of the message pass, and the client is named', async (context) => {
  const upstream = await openCounting(context, (_request, response) => {
    response.setHeader('set-cookie', ['a=1', 'b=2'])
    response.setHeader('connection', 'x-secret')
    response.writeHead(200, { 'x-secret': '1', 'x-public': '2' }).end('ok')
  })
  const world = await openGateway(context, upstream.url)
  const request = httpRequest({
    port: world.port,
    path: '/a//b%2Fc?x=%20&x=2',
    headers: {
      'x-forwarded-for': '6.6.6.6',
      'x-hop': '1',
      connection: 'keep-alive, x-hop, authorization',
      authorization: 'Bearer a',
      te: 'trailers',
    },
  }).end()
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  const [seen] = upstream.seen
  assert.equal(seen?.url, '/a//b%2Fc?x=%20&x=2')
  assert.equal(seen?.headers['x-hop'], undefined)
  assert.equal(seen?.headers.te, undefined)
  assert.equal(seen?.headers.authorization, 'Bearer a', 'no client may take away what its service relies on')
  assert.equal(seen?.headers['x-forwarded-for'], '127.0.0.1', 'what a client says of itself is not believed')
  assert.equal(seen?.headers['x-forwarded-proto'], 'http')
  assert.equal(seen?.headers['x-forwarded-host'], `localhost:${world.port}`)
  assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2'])
  assert.deepEqual([response.headers['x-secret'], response.headers['x-public']], [undefined, '2'])
})

/** Past the 64 MiB of buffers at which V8 begins to collect them by itself. */
const LARGE_MIB = 128
/** Of all that a gigabyte may take; most of it is code that is compiled on the way. */
const GROWTH_MOST_MIB = 48

test('a fresh process passes large bodies in both directions with flat memory, from the first one on', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openServer(context, largeService(LARGE_MIB))
  const expected = await digestOfLarge(LARGE_MIB)
  const { port, pid } = await startGateway(context, folder, { config: { upstream }, store: 'memory' })
  const up = await growthMib(pid, () => upload(port, LARGE_MIB))
  const down = await growthMib(pid, () => download(port))
  assert.deepEqual([up.value, down.value], [expected, expected])
  const growth = `${Math.round(up.mib)} MiB up, ${Math.round(down.mib)} MiB down`
  assert.ok(Math.max(up.mib, down.mib) < GROWTH_MOST_MIB, growth)
})

test('events arrive one by one, and the upstream notices a client that disconnects', async (context) => {
  const gone = Promise.withResolvers<void>()
  let next = () => {}
  const url = await openServer(context, ({ url: path }, response) => {
    const type = path === '/other' ? 'text/plain' : 'text/event-stream'
    response.writeHead(200, { 'content-type': type }).flushHeaders()
    if (path === '/other') return
    next = () => void response.write('data: one\n\n')
    response.once('close', gone.resolve)
  })
  const world = await openGateway(context, url, [things], { timeouts: { idleMs: 100 } })
  const request = httpRequest({ port: world.port, path: '/events' }).end()
  const [response] = await once(request, 'response')
  next()
  const [first] = await once(response, 'data')
  assert.equal(String(first), 'data: one\n\n')
  // Nothing happens for longer than any other answer may pause: one that began later is cut meanwhile.
  await assert.rejects(world.ask({ method: 'GET', path: '/other', key: null }))
  next()
  await once(response, 'data')
  request.destroy()
  await gone.promise
})

test('a WebSocket passes, and so does its refusal', async (context) => {
  const server = createServer((_request, response) => void response.writeHead(426).end('no'))
  server.on('upgrade', (request, socket) => {
    if (request.url === '/refuse') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
    const key = String(request.headers['sec-websocket-key'])
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.write(Buffer.from([0x81, 2, 0x68, 0x69]))
    socket.once('data', () => socket.write(Buffer.from([0x81, 3, 0x79, 0x6f, 0x75])))
    return undefined
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const world = await openGateway(context, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const socket = new WebSocket(`ws://127.0.0.1:${world.port}/chat`)
  const heard: unknown[] = []
  const both = Promise.withResolvers<void>()
  socket.addEventListener('message', ({ data }) => {
    heard.push(data)
    if (heard.length === 1) socket.send('hello')
    else both.resolve()
  })
  await both.promise
  assert.deepEqual(heard, ['hi', 'you'])
  socket.close()
  const refused = new WebSocket(`ws://127.0.0.1:${world.port}/refuse`)
  await once(refused, 'error')
})

test('an upstream that is away, and one that breaks: a problem, and never a hanging client', async (context) => {
  const broken = await openServer(context, (_request, response) => void response.destroy())
  const world = await openGateway(context, broken)
  const answer = await world.ask({ method: 'GET' })
  assert.deepEqual([answer.status, answer.problem], [502, 'upstream-failed'])
  const away = await openGateway(context, 'http://127.0.0.1:1')
  assert.equal((await ask(away.port, { path: '/others' })).status, 502)
})
