import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway } from '../../support/gateway/world.ts'

/** One way to say where a body ends, and the bytes that follow the head. */
interface Framing {
  readonly name: string
  readonly headers: readonly string[]
  readonly wire: string
  /** The body as the client means it; null where two readers could disagree, so that only a refusal is right. */
  readonly body: string | null
}

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

const framings: readonly Framing[] = [
  { name: 'no body', headers: [], wire: '', body: '' },
  { name: 'an empty body', headers: ['Content-Length: 0'], wire: '', body: '' },
  { name: 'a length', headers: [`Content-Length: ${SMUGGLED.length}`], wire: SMUGGLED, body: SMUGGLED },
  { name: 'chunks', headers: ['Transfer-Encoding: chunked'], wire: chunked(SMUGGLED), body: SMUGGLED },
  { name: 'chunks, shouted', headers: ['transfer-encoding: CHUNKED'], wire: chunked('{}'), body: '{}' },
  { name: 'a coding before chunks', headers: ['Transfer-Encoding: gzip, chunked'], wire: chunked('{}'), body: null },
  { name: 'a coding alone', headers: ['Transfer-Encoding: gzip'], wire: '', body: null },
  { name: 'chunks twice', headers: ['Transfer-Encoding: chunked, chunked'], wire: chunked('{}'), body: null },
  {
    name: 'a length and chunks',
    headers: ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    wire: `0\r\n\r\n${SMUGGLED}`,
    body: null,
  },
  {
    name: 'two lengths',
    headers: ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`],
    wire: SMUGGLED,
    body: null,
  },
  { name: 'two hosts', headers: ['Host: y'], wire: '', body: null },
]

const connections: Readonly<Record<string, readonly string[]>> = {
  'kept alive': ['Connection: keep-alive'],
  closed: ['Connection: close'],
  upgraded: [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZQ==',
  ],
  'upgraded to h2c': ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
  'with a length of its own': ['Connection: keep-alive, Content-Length, Host'],
}

const methods = ['GET', 'POST', 'DELETE', 'OPTIONS'] as const
const versions = ['1.1', '1.0'] as const

/** Sends bytes, and waits for an answer's head or the end of the connection. */
async function ask(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.write(bytes, 'latin1')
  const closed = once(socket, 'close')
  while (!text.includes('\r\n\r\n') && !socket.destroyed) await Promise.race([once(socket, 'data'), closed])
  socket.destroy()
  return text
}

test('whatever frames a request, its upstream reads the same one, or none at all', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  let number = 0
  for (const method of methods) {
    for (const version of versions) {
      for (const [kept, connection] of Object.entries(connections)) {
        for (const { name, headers, wire, body } of framings) {
          number++
          const what = `${method} HTTP/${version}, ${name}, ${kept}`
          const path = number % 2 === 0 ? '/things' : '/others'
          const target = `${path}?${number}`
          const key = `Idempotency-Key: framing-${number}`
          const head = [`${method} ${target} HTTP/${version}`, 'Host: x', key, ...connection, ...headers]
          const before = upstream.seen.length
          const answer = await ask(world.port, `${head.join('\r\n')}\r\n\r\n${wire}`)

          // Whoever comes next gets a connection of the pool: nothing of the one before may stand in front of it.
          const mine = `mine-${number}`
          const next = await world.ask({
            path: `/next/${number}`,
            key: mine,
            headers: { cookie: mine },
            body: `"${mine}"`,
          })
          assert.equal(next.status, 201, what)
          const seen = upstream.seen.slice(before)
          assert.deepEqual(
            seen.filter(({ url }) => url !== target).map((one) => [one.url, one.headers.cookie, one.body]),
            [[`/next/${number}`, mine, `"${mine}"`]],
            what,
          )
          const own = seen.filter(({ url }) => url === target)
          const refused = answer.startsWith('HTTP/1.1 400 ')
          if (body === null) assert.ok(refused || answer === '', `${what}: ${answer.slice(0, 100)}`)
          assert.equal(own.length, refused || answer === '' ? 0 : 1, `${what}: ${answer.slice(0, 100)}`)
          if (own[0] !== undefined)
            assert.deepEqual([own[0].method, own[0].body, own[0].headers.host], [method, body, 'x'], what)
        }
      }
    }
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
    const answer = await ask(world.port, `${[...handshake, declared].join('\r\n')}\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 400 /, declared)
  }
  assert.equal(upstream.heads, 0)
})

test('a handshake has a connection of its own, which nobody else gets', async (context) => {
  const ports = new Map<string, number | undefined>()
  const upstream = await openCounting(context, (request, response) => {
    ports.set(request.url ?? '', request.socket.remotePort)
    response.writeHead(200).end()
  })
  const world = await openGateway(context, upstream.url)
  await world.ask({ method: 'GET', path: '/before' })
  const handshake =
    'GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n\r\n'
  assert.match(await ask(world.port, handshake), /^HTTP\/1\.1 200 /)
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
    ask(
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
