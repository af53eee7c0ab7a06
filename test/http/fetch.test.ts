import type { Server } from 'node:http'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import { idempotent, operationStatus } from 'onceonly/fetch'
import type { Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, routeAt, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'
import { responseOf } from './web.ts'

const asker = ({ headers }: Request): Asker => ({ header: (name) => headers.get(name) ?? undefined })

async function serve(site: Site) {
  const protect = idempotent({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  const status = operationStatus(statusOptionsFor(site, asker))
  const handlers = new Map<object, (request: Request) => Promise<Response>>(
    site.routes.map((route) => [
      route,
      protect(definitionFor(route.definition, asker), async (request, protection) =>
        responseOf(await route.act({ ...asker(request), protection, json: () => request.json() })),
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
