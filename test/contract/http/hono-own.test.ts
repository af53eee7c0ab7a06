import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { compress } from 'hono/compress'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'
import { validator } from 'hono/validator'
import { createProtect } from 'onceonly/hono'
import { own } from './own.ts'

const server = (app: Hono) => createAdaptorServer({ fetch: app.fetch }) as Server

test('hono: what is recorded is what the handler answered, not what compression makes of it', async (context) => {
  const { options, ledger, to } = own(context)
  const app = new Hono()
  app.use(compress({ threshold: 0 }), cors())
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, (c) => c.json({ text: 'x'.repeat(5_000) }, 201)),
  )
  const ask = await to(server(app))
  const first = await ask()
  const replay = await ask()
  assert.equal(first.headers.get('content-encoding'), 'gzip')
  assert.equal(replay.headers.get('content-encoding'), 'gzip')
  assert.equal(replay.headers.get('access-control-allow-origin'), '*')
  assert.equal(replay.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual([replay.status, await replay.text()], [201, await first.text()])
  assert.ok(!JSON.stringify((await ledger.list()).rows).includes('content-encoding'))
})

test('hono: a validator before us has read the body, and the handler reads it again', async (context) => {
  const { options, ledger, to } = own(context)
  const app = new Hono()
  const valid = validator('json', (value: { amount: number }, c) => (value.amount > 0 ? value : c.text('no', 400)))
  const handler = createProtect(options)({ effect: 'external' }, valid, async (c) =>
    c.json({ valid: c.req.valid('json'), read: await c.req.json<unknown>() }),
  )
  app.post('/things', handler)
  const ask = await to(server(app))
  assert.equal((await ask({ body: '{"amount":0}' })).status, 400)
  assert.equal((await ledger.list()).rows.length, 0)
  assert.deepEqual(await (await ask()).json(), { valid: { amount: 1 }, read: { amount: 1 } })
  assert.equal((await ask()).headers.get('idempotent-replayed'), 'true')
  assert.equal((await ask({ body: '{"amount":2}' })).status, 409)
})

test('hono: an exception that refuses is final', async (context) => {
  const { options, to } = own(context)
  const app = new Hono()
  app.post(
    '/things',
    createProtect(options)({ effect: 'external' }, () => {
      throw new HTTPException(402, { message: 'no funds' })
    }),
  )
  const ask = await to(server(app))
  assert.equal(await (await ask()).text(), 'no funds')
  const replay = await ask()
  assert.deepEqual([replay.status, await replay.text()], [402, 'no funds'])
  assert.equal(replay.headers.get('idempotent-replayed'), 'true')
})
