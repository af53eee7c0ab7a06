import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import fastify from 'fastify'
import { createProtect, onceonly } from 'onceonly/fastify'
import { own } from './own.ts'

test('fastify: web responses and web streams are recorded, with their own status and headers', async (context) => {
  for (const effect of ['external', 'transaction'] as const) {
    const { options, to } = own(context)
    const app = fastify()
    await app.register(onceonly)
    const protect = createProtect(options)
    app.post(
      '/response',
      protect({ effect }, async () => {
        return new Response('made', { status: 201, headers: { location: '/7', 'set-cookie': 'a=1' } })
      }),
    )
    app.post(
      '/empty',
      protect({ effect }, async () => new Response(null, { status: 202 })),
    )
    app.post(
      '/stream',
      protect({ effect }, (_request, reply) => {
        void reply.header('content-type', 'text/csv').send(ReadableStream.from([Buffer.from('a;'), Buffer.from('b')]))
      }),
    )
    app.post(
      '/text',
      protect({ effect }, (_request, reply) => {
        void reply.header('content-type', 'text/csv').send(Readable.from(['a;', 'b']))
      }),
    )
    await app.ready()
    const ask = await to(app.server)
    for (const path of ['/response', '/empty', '/stream', '/text']) {
      const first = await ask({ path })
      const replay = await ask({ path })
      assert.equal(replay.headers.get('idempotent-replayed'), 'true', path)
      assert.deepEqual([replay.status, await replay.text()], [first.status, await first.text()], path)
      for (const name of ['location', 'content-type']) assert.equal(replay.headers.get(name), first.headers.get(name))
      assert.equal(replay.headers.get('set-cookie'), null)
    }
    assert.equal((await ask({ path: '/response' })).status, 201)
    assert.equal((await ask({ path: '/empty' })).status, 202)
  }
})

test('fastify: parsers of the application stay, and their parsed bodies distinguish payloads', async (context) => {
  const { options, to } = own(context)
  const app = fastify()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    done(null, { own: JSON.parse(body as string) as unknown })
  })
  await app.register(onceonly)
  const protect = createProtect(options)
  app.post(
    '/things',
    protect({ effect: 'external' }, async ({ body }) => ({ got: body })),
  )
  await app.ready()
  const ask = await to(app.server)
  assert.deepEqual(await (await ask()).json(), { got: { own: { amount: 1 } } })
  assert.equal((await ask({ body: '{ "amount": 1 }' })).headers.get('idempotent-replayed'), 'true')
  assert.equal((await ask({ body: '{"amount":2}' })).status, 409)
  const text = { 'content-type': 'text/plain' }
  assert.deepEqual(await (await ask({ key: 'text', body: 'hi', headers: text })).json(), { got: 'hi' })
  assert.equal((await ask({ key: 'other', body: 'x', headers: { 'content-type': 'image/png' } })).status, 415)
})

test('fastify: validation comes before the claim, an error handler that refuses is final', async (context) => {
  const { options, ledger, to } = own(context)
  const app = fastify()
  await app.register(onceonly)
  const protect = createProtect(options)
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    void reply.code(error.statusCode ?? 500).send({ error: error.message })
  })
  const schema = { body: { type: 'object', properties: { amount: { type: 'integer', minimum: 1 } } } }
  app.post(
    '/things',
    { schema },
    protect({ effect: 'external' }, async () => {
      throw Object.assign(new Error('no funds'), { statusCode: 402 })
    }),
  )
  await app.ready()
  const ask = await to(app.server)
  assert.equal((await ask({ body: '{"amount":0}' })).status, 400)
  assert.equal((await ledger.list()).rows.length, 0)
  const refused = await ask()
  assert.deepEqual([refused.status, await refused.json()], [402, { error: 'no funds' }])
  const replay = await ask()
  assert.deepEqual([replay.status, await replay.json()], [402, { error: 'no funds' }])
  assert.equal(replay.headers.get('idempotent-replayed'), 'true')
})

test('fastify: headers of other hooks are in the answer and in its replay', async (context) => {
  const { options, to } = own(context)
  const app = fastify()
  app.addHook('onRequest', async (_request, reply) => void reply.header('access-control-allow-origin', '*'))
  await app.register(onceonly)
  const protect = createProtect(options)
  app.post(
    '/things',
    protect({ effect: 'external' }, async () => 'done'),
  )
  await app.ready()
  const ask = await to(app.server)
  for (const _turn of [1, 2]) assert.equal((await ask()).headers.get('access-control-allow-origin'), '*')
})

test('fastify: HTTP/2 is protected like HTTP/1.1', async (context) => {
  const { options } = own(context)
  const app = fastify({ http2: true })
  await app.register(onceonly)
  const protect = createProtect(options)
  let runs = 0
  app.post(
    '/things',
    protect({ effect: 'external' }, async (_request, reply) => {
      runs++
      return reply.code(201).header('location', '/things/7').send({ id: 7 })
    }),
  )
  app.post(
    '/raw',
    protect({ effect: 'external' }, (_request, reply) => {
      runs++
      reply.hijack()
      reply.raw.writeHead(201, { location: '/things/7' })
      reply.raw.write('{"id"')
      reply.raw.end(':7}')
    }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  context.after(() => app.close())
  context.after(() => session.destroy())
  const ask = async (path: string) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/json',
      'idempotency-key': 'key-1',
    })
    stream.end('{"amount":1}')
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    return { headers, text: Buffer.concat(chunks).toString() }
  }
  for (const path of ['/things', '/raw']) {
    const first = await ask(path)
    const replay = await ask(path)
    assert.equal(first.headers[':status'], 201)
    assert.equal(replay.headers['idempotent-replayed'], 'true')
    assert.deepEqual([replay.headers[':status'], replay.headers['location']], [201, '/things/7'])
    assert.deepEqual([replay.text, first.text], ['{"id":7}', '{"id":7}'])
  }
  assert.equal(runs, 2)
})

test('fastify: hooks that take their time change nothing of a replay or a refusal', async (context) => {
  const { options, to } = own(context)
  const app = fastify()
  // One takes longer than the other: a second response would overtake the first one.
  let hooks = 0
  app.addHook('onSend', async (_request, _reply, payload) => {
    for (let turns = 10 - 4 * (hooks++ % 3); turns > 0; turns--)
      await new Promise((resolve) => void setImmediate(resolve))
    return payload
  })
  await app.register(onceonly)
  const who = async () => options.who()
  const protect = createProtect({ ...options, who })
  app.post(
    '/things',
    protect({ name: 'thing.make', effect: 'external' }, async (_request, reply) => reply.code(201).send({ id: 1 })),
  )
  await app.ready()
  const ask = await to(app.server)
  for (const replayed of [null, 'true', 'true']) {
    const response = await ask()
    assert.deepEqual([response.status, response.headers.get('idempotent-replayed')], [201, replayed])
    assert.equal(await response.text(), '{"id":1}')
  }
  const other = await ask({ body: '{"amount":2}' })
  assert.equal(other.status, 409)
  assert.equal(((await other.json()) as { status: number }).status, 409)
})
