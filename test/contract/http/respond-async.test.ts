import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { test } from 'node:test'
import fastify from 'fastify'
import { onceonly, createProtect as protectFastify } from 'onceonly/fastify'
import { createProtect as protectFetch } from 'onceonly/fetch'
import { createProtect, operationStatus } from 'onceonly/node'
import { until } from '../../../src/testing/until.ts'
import { own } from './own.ts'

/** What the cases of the kit do not reach: connections, limits, and servers that stop. */

const prefer = { prefer: 'respond-async' }
const offered = { effect: 'external', respondAsync: true } as const

/** A request as its bytes, for connections that carry more than one. */
function bytesOf(key: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ host: 'test', 'idempotency-key': key, 'content-length': '2', ...headers })
  return `POST /things HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n{}`
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

test('the 202 ends its connection, whatever follows on it, and the server serves others', async (context) => {
  const { options, ledger, to } = own(context)
  const gate = Promise.withResolvers<void>()
  const listener = createProtect(options)(offered, async ({ headers }, response) => {
    const { 'idempotency-key': key } = headers
    if (key === 'background') await gate.promise
    // A handler may look at its connection after it has ended, and may want it kept.
    response.setTimeout(5_000).setHeader('connection', 'keep-alive')
    response.end(key === 'background' ? `done for ${response.req.socket.remoteAddress}` : 'done')
  })
  const server = createServer((request, response) => void listener(request, response))
  const ask = await to(server)
  const socket = connect(portOf(server), '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // An ordinary request first: the connection is kept alive then. The last one comes while the one before it runs.
  socket.write(bytesOf('first'))
  await until('the first answer', () => Buffer.concat(chunks).includes('done'))
  socket.write(bytesOf('background', prefer) + bytesOf('behind'))
  await once(socket, 'close')
  const text = Buffer.concat(chunks).toString()
  assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 2, text)
  assert.match(text, /HTTP\/1\.1 202 Accepted\r\n[^]*connection: close\r\n/i)
  // A handler that ends before its connection does.
  const quick = connect(portOf(server), '127.0.0.1').resume()
  quick.write(bytesOf('quick', prefer) + bytesOf('behind-quick'))
  await once(quick, 'close')
  gate.resolve()
  const retry = await ask({ key: 'background', body: '{}', headers: { 'content-type': '' } })
  assert.match(await retry.text(), /^done for .*127\.0\.0\.1$/)
  // Those behind a 202 may have lost their connection before they began.
  await until('all three are recorded', async () => {
    const { rows } = await ledger.list()
    const done = rows.filter(({ record }) => record.state === 'succeeded').map(({ record }) => record.identity.key)
    return ['first', 'background', 'quick'].every((key) => done.includes(key))
  })
})

test('fetch: an answer that is too large to be kept ends in the background, whatever its signal says', async (context) => {
  const { options, ledger } = own(context)
  const client = new AbortController()
  const handle = protectFetch(options)(offered, async () => {
    // As servers do that abort the signal of a request that has its answer.
    client.abort()
    async function* parts() {
      for (let turn = 0; turn < 3; turn++) yield new Uint8Array(1_024 * 1_024)
    }
    return new Response(ReadableStream.from(parts()) as ReadableStream)
  })
  const headers = { ...prefer, 'idempotency-key': 'key-1' }
  const accepted = await handle(new Request('http://host/a', { method: 'POST', headers, signal: client.signal }))
  assert.equal(accepted.status, 202)
  await until('it is recorded', async () => (await ledger.list()).rows[0]?.record.state === 'succeeded')
  const retry = await handle(new Request('http://host/a', { method: 'POST', headers }))
  const { original } = (await retry.json()) as { original: { bytes: number } }
  assert.deepEqual([retry.status, original.bytes], [409, 3 * 1_024 * 1_024])
})

test('past so many in the background the preference is ignored, until one is done', async (context) => {
  const { options, to } = own(context)
  const gate = Promise.withResolvers<void>()
  let running = 0
  const listener = createProtect(options)(offered, async (_request, response) => {
    running++
    await gate.promise
    response.end('done')
  })
  const ask = await to(createServer((request, response) => void listener(request, response)))
  const most = 100
  for (let at = 0; at < most; at++) {
    const accepted = await ask({ key: `key-${at}`, headers: prefer })
    assert.equal(accepted.status, 202)
    await accepted.text()
  }
  const waits = ask({ key: 'one-more', headers: prefer })
  await until('its handler runs', () => running === most + 1)
  gate.resolve()
  const answer = await waits
  assert.deepEqual([answer.status, answer.headers.get('preference-applied'), await answer.text()], [200, null, 'done'])
  assert.equal((await ask({ key: 'later', headers: prefer })).status, 202)
})

test('a ledger that stops waits for what runs in the background', async (context) => {
  const { options, ledger, to } = own(context)
  const gate = Promise.withResolvers<void>()
  const listener = createProtect(options)(offered, async (_request, response) => {
    await gate.promise
    response.writeHead(201).end('done')
  })
  const status = operationStatus(options)
  const ask = await to(
    createServer((request, response) => void (request.method === 'GET' ? status : listener)(request, response)),
  )
  const accepted = await ask({ headers: prefer })
  const location = accepted.headers.get('location') ?? ''
  let stopped = false
  const stopping = ledger.stop().then(() => void (stopped = true))
  const running = (await (await ask({ method: 'GET', path: location, key: null, body: null })).json()) as object
  assert.deepEqual([stopped, 'result' in running], [false, false])
  gate.resolve()
  await stopping
  assert.equal((await ledger.list()).rows[0]?.record.state, 'succeeded')
})

test('fastify: closing the server waits for its background, headers of hooks are in the 202', async (context) => {
  const { options, ledger } = own(context)
  const app = fastify()
  const gate = Promise.withResolvers<void>()
  const seen: (readonly [status: number, finished: boolean])[] = []
  app.addHook('onRequest', async (_request, reply) => void reply.header('access-control-allow-origin', '*'))
  app.addHook('onResponse', async (_request, reply) => void seen.push([reply.statusCode, reply.raw.writableFinished]))
  await app.register(onceonly)
  const protect = protectFastify(options)
  const handler = protect(offered, async (_request, reply) => {
    await gate.promise
    return reply.code(201).send({ done: true })
  })
  app.post('/things', handler)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const accepted = await fetch(`http://127.0.0.1:${portOf(app.server)}/things`, {
    method: 'POST',
    headers: { ...prefer, 'idempotency-key': 'key-1' },
  })
  assert.equal(accepted.status, 202)
  assert.equal(accepted.headers.get('access-control-allow-origin'), '*')
  await accepted.text()
  let closed = false
  const closing = app.close().then(() => void (closed = true))
  await until('the server takes no more', () => !app.server.listening)
  assert.equal(closed, false)
  gate.resolve()
  await closing
  assert.equal((await ledger.list()).rows[0]?.record.state, 'succeeded')
  await until('the hooks saw the answer of the handler', () => seen.length === 1)
  assert.deepEqual(seen, [[201, true]])
})

test('fastify: injected requests and HTTP/2 are answered by their handler', async (context) => {
  const { options } = own(context)
  const plain = fastify()
  await plain.register(onceonly)
  const protect = protectFastify(options)
  plain.post(
    '/injected',
    protect(offered, async () => 'done'),
  )
  const injected = await plain.inject({
    method: 'POST',
    url: '/injected',
    headers: { ...prefer, 'idempotency-key': 'key-1' },
  })
  assert.deepEqual([injected.statusCode, injected.body], [200, 'done'])
  await plain.close()
  const app = fastify({ http2: true })
  context.after(() => app.close())
  await app.register(onceonly)
  app.post(
    '/things',
    protect(offered, async () => 'done'),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connectHttp2(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  const stream = session.request({ ':method': 'POST', ':path': '/things', 'idempotency-key': 'key-2', ...prefer })
  stream.end()
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  stream.resume()
  session.destroy()
  assert.equal(headers[':status'], 200)
})

test('a request whose body is still on its way keeps its connection', async (context) => {
  const { options, to } = own(context)
  const app = fastify()
  // The body is handed on as a stream, and is no part of the fingerprint.
  app.addContentTypeParser('application/octet-stream', (_request, _payload, done) => done(null, {}))
  await app.register(onceonly)
  const protect = protectFastify(options)
  const begun = Promise.withResolvers<void>()
  const count = protect(offered, async ({ raw }) => {
    begun.resolve()
    let bytes = 0
    for await (const chunk of raw) bytes += (chunk as Buffer).length
    return { bytes }
  })
  app.post('/things', count)
  await app.ready()
  await to(app.server)
  const socket = connect(portOf(app.server), '127.0.0.1')
  const type = { 'content-type': 'application/octet-stream', connection: 'close', 'content-length': '6' }
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(bytesOf('key-1', { ...prefer, ...type }).slice(0, -2))
  await begun.promise
  socket.write('{}rest')
  await once(socket, 'close')
  assert.match(Buffer.concat(chunks).toString(), /HTTP\/1\.1 200 OK[^]*\{"bytes":6\}$/)
})

test('the words of Stripe have no 202 for a request that is being processed', (context) => {
  const { options } = own(context)
  const declare = () => createProtect(options)({ ...offered, profile: 'stripe' }, () => {})
  assert.throws(declare, { code: 'bad_option', message: /`respondAsync`.*'stripe'/ })
})
