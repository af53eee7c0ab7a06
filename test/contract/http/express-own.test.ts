import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { NextFunction, Request, Response } from 'express'
import express from 'express'
import { notDone } from 'onceonly'
import { createProtect, keepRawBody } from 'onceonly/express'
import { own } from './own.ts'

test('express: payloads differ also behind a parser that keeps no raw bytes', async (context) => {
  const { options, to } = own(context)
  const app = express()
  app.use(express.json(), express.urlencoded())
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, (request: Request, response: Response) => {
      response.json({ got: request.body as unknown })
    }),
  )
  const ask = await to(createServer(app))
  const first = await ask({ body: '{"a":1,"b":2}' })
  assert.deepEqual(await first.json(), { got: { a: 1, b: 2 } })
  const again = await ask({ body: '{ "b":2, "a":1 }' })
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal((await ask({ body: '{"a":1,"b":3}' })).status, 409)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await ask({ key: 'form', body: 'a=1', headers: form })).status, 200)
  assert.equal((await ask({ key: 'form', body: 'a=1', headers: form })).headers.get('idempotent-replayed'), 'true')
  assert.equal((await ask({ key: 'form', body: 'a=2', headers: form })).status, 409)
})

test('express: a compressed body that a parser has inflated counts by its meaning', async (context) => {
  const { options, to } = own(context)
  const app = express()
  app.use(express.json({ verify: keepRawBody }))
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, (_request: Request, response: Response) => {
      response.end()
    }),
  )
  const ask = await to(createServer(app))
  const headers = { 'content-encoding': 'gzip' }
  assert.equal((await ask({ body: gzipSync('{"a":1,"b":2}'), headers })).status, 200)
  const again = await ask({ body: gzipSync('{"b":2,"a":1}'), headers })
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal((await ask({ body: gzipSync('{"a":2}'), headers })).status, 409)
})

test('express: an error middleware that refuses is final; what was thrown decides where it answers 5xx', async (context) => {
  const { options, ledger, to } = own(context)
  const app = express()
  app.use(express.json({ verify: keepRawBody }))
  const seen: unknown[] = []
  let runs = 0
  const protect = createProtect(options)
  const handler = protect({ name: 'thing', effect: 'external' }, (request) => {
    runs++
    const { status } = request.body as { status: number }
    const error = Object.assign(new Error(`a ${status}`), { status })
    throw status === 503 ? notDone(error) : error
  })
  app.post('/things', handler)
  app.use((error: Error & { status: number }, _request: Request, response: Response, _next: NextFunction) => {
    seen.push(error)
    response.status(error.status).json({ error: error.message })
  })
  const ask = await to(createServer(app))
  for (const status of [422, 500, 503]) {
    const answer = await ask({ key: `k${status}`, body: JSON.stringify({ status }) })
    assert.equal(answer.status, status)
    assert.deepEqual(await answer.json(), { error: `a ${status}` })
  }
  const states = (await ledger.list()).rows.map(({ record }) => [record.identity.key, record.state])
  assert.deepEqual(Object.fromEntries(states), { k422: 'failed_terminal', k500: 'unknown', k503: 'failed_retryable' })
  assert.ok(
    seen.every((error) => error instanceof Error),
    'a verdict reached the application',
  )
  const replay = await ask({ key: 'k422', body: '{"status":422}' })
  assert.deepEqual([replay.status, await replay.json()], [422, { error: 'a 422' }])
  assert.equal(runs, 3)
})

test('express: headers of earlier middleware are there once, in the answer and in its replay', async (context) => {
  const { options, to } = own(context)
  const app = express()
  app.use((_request, response, next) => {
    response.setHeader('vary', 'Origin')
    response.setHeader('access-control-allow-origin', '*')
    next()
  })
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, (_request: Request, response: Response) => {
      response.vary('Accept').send('done')
    }),
  )
  const ask = await to(createServer(app))
  const first = await ask()
  const replay = await ask()
  for (const name of ['vary', 'access-control-allow-origin', 'etag', 'content-type', 'content-length']) {
    assert.equal(replay.headers.get(name), first.headers.get(name), name)
  }
  assert.equal(first.headers.get('vary'), 'Origin, Accept')
  assert.equal(replay.headers.get('idempotent-replayed'), 'true')
})

test('express: an answer that was given before the handler threw stays', async (context) => {
  const { options, to } = own(context)
  const app = express()
  const errors: unknown[] = []
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, async (_request: Request, response: Response) => {
      response.status(201).send('done')
      throw new Error('too late')
    }),
  )
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    errors.push(error)
    if (!response.headersSent) next(error)
  })
  const ask = await to(createServer(app))
  const first = await ask()
  assert.deepEqual([first.status, await first.text()], [201, 'done'])
  const replay = await ask()
  assert.deepEqual([replay.status, await replay.text()], [201, 'done'])
  assert.equal(errors.length, 1)
})

test('express: what is known at once is answered before the middleware returns', async (context) => {
  const { options, to } = own(context)
  const app = express()
  app.use(express.json({ verify: keepRawBody }))
  const protect = createProtect(options)
  const handler = protect({ name: 'thing', effect: 'external' }, (_request: Request, response: Response) => {
    response.status(201).json({ made: true })
  })
  const atReturn: boolean[] = []
  app.post('/things', (request, response, next) => {
    void handler(request, response, next)
    atReturn.push(response.writableEnded)
  })
  const ask = await to(createServer(app))
  for (const replayed of [null, 'true', 'true']) {
    const response = await ask({ body: '{"a":1}' })
    assert.equal(response.headers.get('idempotent-replayed'), replayed)
    assert.equal(await response.text(), '{"made":true}')
  }
  assert.deepEqual(atReturn, [true, true, true])
})
