import type { Server } from 'node:http'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import type { Context } from 'hono'
import { Hono } from 'hono'
import type { RouteContext } from 'onceonly/hono'
import { idempotent, operationStatus } from 'onceonly/hono'
import type { Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'
import { responseOf } from './web.ts'

type Env = { Variables: { onceonly?: RouteContext<unknown> } }

const asker = ({ req }: Context<Env>): Asker => ({ header: (name) => req.header(name) })

async function serve(site: Site) {
  const app = new Hono<Env>()
  // Errors that a case provokes are its own business.
  app.onError((_error, context) => context.text('Internal Server Error', 500))
  const protect = idempotent({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  for (const route of site.routes) {
    const router = new Hono<Env>()
    // Hono answers a HEAD with the GET of the same path.
    const method = route.method === 'HEAD' ? 'GET' : route.method
    router.on(method, route.path, protect(definitionFor(route.definition, asker)), async (context) => {
      const protection = context.get('onceonly') ?? null
      return responseOf(await route.act({ ...asker(context), protection, json: () => context.req.json() }))
    })
    app.route(route.mount ?? '/', router)
  }
  app.get(site.status.path, operationStatus(statusOptionsFor(site, asker)))
  return listen(createAdaptorServer({ fetch: app.fetch }) as Server)
}

httpConformance({ test, serve })
