import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import { createLedger } from 'onceonly'
import { createProtect, operationStatus } from 'onceonly/fetch'
import { memoryStore } from 'onceonly/memory'
import type { Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, routeAt, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'
import { responseOf } from './web.ts'

const asker = ({ headers }: Request): Asker => ({ header: (name) => headers.get(name) ?? undefined })

async function serve(site: Site) {
  const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  const status = operationStatus(statusOptionsFor(site, asker))
  const handlers = new Map<object, (request: Request) => Promise<Response>>(
    site.routes.map((route) => [
      route,
      protect(definitionFor(route.definition, asker), async (request, _extra, context) =>
        responseOf(await route.act({ ...asker(request), context, json: () => request.json() })),
      ),
    ]),
  )
  const fetch = (request: Request): Response | Promise<Response> => {
    const route = routeAt(site, request.method, new URL(request.url).pathname)
    const handler = route === 'status' ? status : handlers.get(route ?? {})
    return handler === undefined ? new Response(null, { status: 404 }) : handler(request)
  }
  return listen(createAdaptorServer({ fetch }) as Server)
}

httpConformance({ test, serve })

test('fetch: a handler that returns no answer has failed, and its key is not held for it', async () => {
  const store = memoryStore()
  const ledger = createLedger({ store, background: false })
  const errors: unknown[] = []
  const who = () => ({ tenant: 'acme', caller: 'ann' })
  const protect = createProtect({ ledger, who, onError: (error) => errors.push(error) })
  let answer: Response | undefined
  const handler = protect({ effect: 'repeatable' }, () => answer as Response)
  const ask = () => handler(new Request('http://host/a', { method: 'POST', headers: { 'idempotency-key': 'k' } }))
  const failed = await ask()
  // The outcome is recorded when the answer is at its end.
  assert.match(await failed.text(), /internal-error/)
  assert.equal(failed.status, 500)
  assert.match(String(errors[0]), /no Response/)
  answer = new Response('done', { status: 201 })
  assert.equal((await ask()).status, 201)
  await ledger.stop()
  await store.stop()
})

test('fetch: a proxy of a request, as Next.js hands it over, is protected too', async () => {
  const ledger = createLedger({ store: memoryStore(), background: false })
  const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })
  const place = protect({ name: 'order.place', effect: 'external' }, async (request) =>
    Response.json({ item: await request.text(), agent: request.headers.get('user-agent') }),
  )
  const get = (target: Request, name: keyof Request): unknown => {
    const value: unknown = target[name]
    return typeof value === 'function' ? value.bind(target) : value
  }
  const send = () => {
    const headers = { 'idempotency-key': 'k', 'user-agent': 'test' }
    const request = new Request('http://localhost/orders', { method: 'POST', headers, body: 'pen' })
    return place(new Proxy(request, { get: (target, name) => get(target, name as keyof Request) }), {})
  }
  assert.deepEqual(await (await send()).json(), { item: 'pen', agent: 'test' })
  assert.equal((await send()).headers.get('idempotent-replayed'), 'true')
})
