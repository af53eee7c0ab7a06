import type { IncomingMessage, Server } from 'node:http'
import { createServer } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import Router from '@koa/router'
import express from 'express'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import type { Ledger } from 'onceonly'
import * as onExpress from 'onceonly/express'
import * as onFastify from 'onceonly/fastify'
import * as onFetch from 'onceonly/fetch'
import * as onHono from 'onceonly/hono'
import * as onKoa from 'onceonly/koa'
import type { Order, Receipt } from '../harness/orders.ts'
import { type AdapterName, COUNT_PATH, PATH } from './task.ts'

/** The same application in every framework. With a ledger, its one route is protected. */
export interface AppOptions {
  readonly ledger: Ledger<unknown> | null
  /** Places an order. */
  place(order: Order): Promise<Receipt>
  /** Says what was done. */
  count(): Promise<object>
  /** Before the routes, in Fastify. */
  readonly prepare?: (app: ReturnType<typeof Fastify>) => void
}

const who = () => ({ tenant: 'acme', caller: 'checkout' })
const definition = { name: 'bench.order', effect: 'external' } as const
const CREATED = 201

export async function createApp(adapter: AdapterName, options: AppOptions): Promise<Server> {
  switch (adapter) {
    case 'fastify':
      return await fastifyApp(options)
    case 'express':
      return expressApp(options)
    case 'hono':
      return honoApp(options)
    case 'koa':
      return koaApp(options)
    case 'fetch':
      return fetchApp(options)
  }
}

async function fastifyApp({ ledger, place, count, prepare }: AppOptions): Promise<Server> {
  const app = Fastify({ forceCloseConnections: true })
  prepare?.(app)
  const handler = async (request: FastifyRequest<{ Body: Order }>, reply: FastifyReply) =>
    reply.code(CREATED).send(await place(request.body))
  if (ledger === null) app.post<{ Body: Order }>(PATH, handler)
  else {
    await app.register(onFastify.onceonly)
    const protect = onFastify.createProtect({ ledger, who })
    app.post<{ Body: Order }>(PATH, protect(definition, handler))
  }
  app.post(COUNT_PATH, () => count())
  await app.ready()
  return app.server
}

function expressApp({ ledger, place, count }: AppOptions): Server {
  const app = express()
  app.use(express.json({ verify: onExpress.keepRawBody }))
  const handler = async (request: express.Request, response: express.Response) =>
    response.status(CREATED).json(await place(request.body as Order))
  app.post(PATH, ledger === null ? handler : onExpress.createProtect({ ledger, who })(definition, handler))
  app.post(COUNT_PATH, async (_request, response) => response.json(await count()))
  return createServer(app)
}

function honoApp({ ledger, place, count }: AppOptions): Server {
  const app = new Hono()
  const handler = async (c: Context) => c.json(await place(await c.req.json<Order>()), CREATED)
  app.post(PATH, ledger === null ? handler : onHono.createProtect({ ledger, who })(definition, handler))
  app.post(COUNT_PATH, async (c) => c.json(await count()))
  return createAdaptorServer({ fetch: app.fetch }) as Server
}

function koaApp({ ledger, place, count }: AppOptions): Server {
  const app = new Koa()
  const router = new Router()
  const handler = async (ctx: onKoa.KoaContext) => {
    // The protection has parsed it.
    const { body = JSON.parse(await textOf(ctx.req)) as unknown } = ctx.request as { body?: unknown }
    ctx.body = await place(body as Order)
    ctx.status = CREATED
  }
  router.post(PATH, ledger === null ? handler : onKoa.createProtect({ ledger, who })(definition, handler))
  router.post(COUNT_PATH, async (ctx) => {
    ctx.body = await count()
  })
  const callback = app.use(router.routes()).callback()
  return createServer((request, response) => void callback(request, response))
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function fetchApp({ ledger, place, count }: AppOptions): Server {
  const bare = async (request: Request) =>
    Response.json(await place((await request.json()) as Order), { status: CREATED })
  const handler = ledger === null ? bare : onFetch.createProtect({ ledger, who })(definition, bare)
  const fetch = async (request: Request) =>
    new URL(request.url).pathname === PATH ? await handler(request) : Response.json(await count())
  return createAdaptorServer({ fetch }) as Server
}
