import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { createProtect as protectExpress } from 'onceonly/express'
import { createProtect as protectFastify } from 'onceonly/fastify'
import { createProtect as protectFetch } from 'onceonly/fetch'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { own } from './own.ts'

/** The likeliest mistakes with a route: each is refused with one sentence that says what to do. */

const refused = (message: string) => ({ name: 'OnceError', code: 'bad_option', message })

test('a missing `who`, a store as ledger and unknown options are refused when the server starts', (context) => {
  const { options } = own(context)
  const { ledger, who } = options
  assert.throws(
    () => createProtect({ ledger } as never),
    refused(
      'createProtect needs `who`: a function that returns { tenant, caller } of the authenticated request, for example (request) => ({ tenant: request.user.orgId, caller: request.user.id }).',
    ),
  )
  assert.throws(
    () => createProtect({ ledger: memoryStore(), who } as never),
    refused('The `ledger` of createProtect is a store: pass createLedger({ store }).'),
  )
  assert.throws(
    () => createProtect({ who } as never),
    refused('createProtect needs a `ledger`: pass createLedger({ store }).'),
  )
  assert.throws(
    () => createProtect({ ledger, who, maxBodyByte: 1 } as never),
    refused('createProtect has no option `maxBodyByte`. Did you mean `maxBodyBytes`?'),
  )
  const protect = createProtect(options)
  assert.throws(
    () => protect({ name: 'order.place', effect: 'external', ttl: 5 } as never, () => {}),
    refused('The route order.place has no option `ttl`. Did you mean `retainMs`?'),
  )
  assert.throws(
    () => protect({ name: 'order.place', efect: 'external' } as never, () => {}),
    refused('The route order.place has no option `efect`. Did you mean `effect`?'),
  )
})

test('a `who` that returns nothing is reported, and nothing is claimed', async (context) => {
  const { options, ledger, to } = own(context)
  const errors: unknown[] = []
  const who = () => undefined as never
  const protect = createProtect({ ...options, who, onError: (error) => errors.push(error) })
  const listener = protect({ effect: 'external' }, () => assert.fail('the handler ran'))
  const ask = await to(createServer((request, response) => void listener(request, response)))
  assert.equal((await ask({ path: '/orders?a=1' })).status, 500)
  const message =
    '`who` returned undefined for POST /orders: return { tenant, caller }, or refuse unauthenticated requests before protect.'
  assert.deepEqual(
    errors.map((error) => (error as Error).message),
    [message],
  )
  assert.equal((await ledger.list()).rows.length, 0)
})

for (const caller of [undefined, null, '', 5]) {
  test(`a \`who\` that names the caller ${JSON.stringify(caller)} is reported with a key and without one`, async (context) => {
    const { options, ledger, to } = own(context)
    const errors: unknown[] = []
    const who = () => ({ tenant: 'acme', caller: caller as never })
    const protect = createProtect({ ...options, who, onError: (error) => errors.push(error) })
    const listener = protect({ effect: 'external', key: 'optional', content: {} }, () => assert.fail('the handler ran'))
    const ask = await to(createServer((request, response) => void listener(request, response)))
    assert.deepEqual([(await ask()).status, (await ask({ key: null })).status], [500, 500])
    const [keyed, keyless] = errors as Error[]
    assert.equal(keyless?.message, keyed?.message)
    assert.match(String(keyless?.message), /^The identity's `caller` /)
    assert.equal((await ledger.list()).rows.length, 0)
  })
}

test('a body that was read before protect is refused, and nothing is claimed', async (context) => {
  const { options, ledger, to } = own(context)
  const app = express()
  app.use((request, _response, next) => void request.resume().once('end', next))
  app.post(
    '/things',
    protectExpress(options)({ effect: 'external' }, () => assert.fail('the handler ran')),
  )
  const errors: string[] = []
  app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    errors.push(error.message)
    response.status(500).end()
  })
  const ask = await to(createServer(app))
  assert.equal((await ask()).status, 500)
  const consumed = 'The body of POST /things was read before protect could fingerprint it:'
  assert.deepEqual(errors, [
    `${consumed} use express.json({ verify: keepRawBody }) in place of the parser that read it.`,
  ])
  const handler = protectFetch(options)({ effect: 'external' }, () => assert.fail('the handler ran'))
  const headers = { 'idempotency-key': 'key-1' }
  const request = new Request('http://host/things', { method: 'POST', headers, body: '{}' })
  await request.text()
  await assert.rejects(
    handler(request),
    refused(`${consumed} read it in the handler, or read a request.clone() before.`),
  )
  assert.equal((await ledger.list()).rows.length, 0)
})

test('fastify: a route without the plugin says how to register it', async (context) => {
  const { options } = own(context)
  const app = fastify()
  app.post(
    '/things',
    protectFastify(options)({ effect: 'external' }, async () => assert.fail('the handler ran')),
  )
  const answer = await app.inject({ method: 'POST', url: '/things', headers: { 'idempotency-key': 'key-1' } })
  assert.equal(answer.statusCode, 500)
  assert.equal(
    answer.json<{ message: string }>().message,
    'The plugin of onceonly/fastify is not registered: call `await app.register(onceonly)` before the routes.',
  )
  await app.close()
})
