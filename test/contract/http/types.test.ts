import assert from 'node:assert/strict'
import { test } from 'node:test'
import express, { type Request as ExpressRequest } from 'express'
import fastify from 'fastify'
import { type Context, Hono } from 'hono'
import { hc } from 'hono/client'
import { validator } from 'hono/validator'
import { createProtect as protectExpress } from 'onceonly/express'
import { createProtect as protectFastify } from 'onceonly/fastify'
import { createProtect as protectFetch } from 'onceonly/fetch'
import { createProtect as protectHono } from 'onceonly/hono'
import { createProtect as protectKoa } from 'onceonly/koa'
import type { MemoryTx } from 'onceonly/memory'
import { own } from './own.ts'

interface Letter {
  readonly to: string
  readonly text?: string
}

const byContent = { effect: 'external', key: 'optional' } as const

/** Compiled by the type check: what a handler sees of its framework, and of the context. */

test('handlers are typed by their framework, and the context by the definition', (context) => {
  const { options } = own(context)

  const onExpress = protectExpress(options)
  express().post(
    '/orders/:id',
    onExpress({ effect: 'transaction' }, (request: ExpressRequest<{ id: string }>, response, { tx }) => {
      const id: string = request.params.id
      const typed: MemoryTx = tx
      response.json({ id, typed: typed !== null })
    }),
  )
  onExpress({ effect: 'external' }, (_request, _response, once) => {
    // @ts-expect-error -- only a transaction has one.
    void once.tx
  })
  onExpress({ effect: 'transaction', key: 'optional' }, (_request, _response, once) => {
    // @ts-expect-error -- null without a key.
    void once.tx
    const typed: MemoryTx | undefined = once?.tx
    return typed
  })
  onExpress(
    { effect: 'external', key: 'optional', content: { of: (body: Letter) => [body.to, body.text] } },
    (request, _response, once) => {
      const to: string = request.body.to
      // @ts-expect-error -- null while the store is down.
      void once.effectKey
      return to
    },
  )
  express().post(
    '/letters',
    onExpress({ ...byContent, content: { of: (body) => [body.to, body.text] } }, () => {}),
  )
  // @ts-expect-error -- no part of a content.
  onExpress({ ...byContent, content: { of: (body: { to: Date }) => [body.to] } }, () => {})
  // @ts-expect-error -- not an option.
  assert.throws(() => onExpress({ effect: 'external', ttl: 5 }, () => {}))
  // @ts-expect-error -- `who` is needed.
  assert.throws(() => protectExpress({ ledger: options.ledger }))
  // A request that authentication has added to.
  const ofUser = ({ user }: { user: { orgId: string } }) => ({ tenant: user.orgId, caller: 'shared' })
  protectExpress({
    ledger: options.ledger,
    who: (request: ExpressRequest & { user: { orgId: string } }) => ofUser(request),
  })
  protectFetch({ ledger: options.ledger, who: (request: Request & { user: { orgId: string } }) => ofUser(request) })
  // @ts-expect-error -- not a request of Express.
  protectExpress({ ledger: options.ledger, who: (request: Request) => ({ tenant: request.url, caller: 'shared' }) })

  const onFastify = protectFastify(options)
  fastify().post<{ Body: { item: string }; Reply: { ok: boolean } }>(
    '/orders',
    onFastify({ effect: 'transaction' }, async (request, _reply, { tx }) => {
      const item: string = request.body.item
      return { ok: item !== '' && tx !== null }
    }),
  )
  fastify().post<{ Body: Letter }>(
    '/letters',
    onFastify({ ...byContent, content: { of: (body) => [body.to, body.text] } }, async () => {}),
  )
  fastify().post<{ Body: Letter }>(
    '/letters',
    // @ts-expect-error -- not in the body.
    onFastify({ ...byContent, content: { of: (body) => [body.subject] } }, async () => {}),
  )
  fastify().post<{ Reply: { ok: boolean } }>(
    '/orders',
    // @ts-expect-error -- not what the route answers.
    onFastify({ effect: 'external' }, async () => ({ ok: 'yes' })),
  )

  type AppEnv = { Variables: { user: string } }
  const who = (c: Context<AppEnv>) => ({ tenant: 'acme', caller: c.get('user') })
  const onHono = protectHono({ ledger: options.ledger, who })
  const amount = validator('json', ({ amount: given }: { amount: number }) => ({ amount: given }))
  const routes = new Hono<AppEnv>().post(
    '/orders/:id',
    onHono({ effect: 'transaction' }, amount, (c, { tx }) => {
      const given: number = c.req.valid('json').amount
      const user: string = c.get('user')
      return c.json({ given, user, typed: tx !== null }, 201)
    }),
  )
  const letter = validator('json', (given: Letter) => given)
  onHono({ ...byContent, content: { of: (body) => [body.to, body.text] } }, letter, (c) => c.json({}))
  // @ts-expect-error -- not in the body.
  onHono({ ...byContent, content: { of: (body) => [body.subject] } }, letter, (c) => c.json({}))
  onHono({ ...byContent, content: { of: (body) => [body.to] } }, (c) => c.json({}))
  const call = async () => {
    const client = hc<typeof routes>('http://host')
    const answer = await client.orders[':id'].$post({ param: { id: '1' }, json: { amount: 1 } })
    const given: number = (await answer.json()).given
    // @ts-expect-error -- not what the validator takes.
    await client.orders[':id'].$post({ param: { id: '1' }, json: { amount: 'one' } })
    return given
  }
  assert.equal(typeof call, 'function')

  protectKoa(options)({ ...byContent, content: { of: (body) => [body.to] } }, () => {})
  protectKoa(options)({ effect: 'transaction' }, (ctx, { tx }) => {
    const id: string | undefined = ctx.params['id']
    const typed: MemoryTx = tx
    ctx.body = { id, typed: typed !== null }
  })

  const onFetch = protectFetch(options)
  onFetch({ ...byContent, content: { of: (body) => [body.to, body.text] } }, () => new Response())
  const POST = onFetch(
    { effect: 'transaction' },
    async (_request, { params }: { params: Promise<{ id: string }> }, { tx }) => {
      const { id } = await params
      const typed: MemoryTx = tx
      return Response.json({ id, typed: typed !== null })
    },
  )
  const route: (request: Request, extra: { params: Promise<{ id: string }> }) => Promise<Response> = POST
  assert.equal(route, POST)
  // @ts-expect-error -- the handler needs its parameters.
  const alone: (request: Request) => Promise<Response> = POST
  assert.equal(alone, POST)
})
