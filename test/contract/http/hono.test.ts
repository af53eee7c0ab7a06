import type { Server } from 'node:http'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import type { Context } from 'hono'
import { Hono } from 'hono'
import { createProtect, operationStatus, recordErrors } from 'onceonly/hono'
import type { Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'
import { responseOf } from './web.ts'

const asker = ({ req }: Context): Asker => ({ header: (name) => req.header(name) })

async function serve(site: Site) {
  const app = new Hono()
  // Errors that a case provokes are its own business.
  app.onError((_error, context) => context.text('Internal Server Error', 500))
  app.use(recordErrors)
  const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  for (const route of site.routes) {
    const router = new Hono()
    // Hono answers a HEAD with the GET of the same path.
    const method = route.method === 'HEAD' ? 'GET' : route.method
    const handler = protect(definitionFor(route.definition, asker), async (c: Context, context) =>
      responseOf(await route.act({ ...asker(c), context, json: () => c.req.json() })),
    )
    router.on(method, route.path, handler)
    app.route(route.mount ?? '/', router)
  }
  app.get(site.status.path, operationStatus(statusOptionsFor(site, asker)))
  return listen(createAdaptorServer({ fetch: app.fetch }) as Server)
}

httpConformance({ test, serve })
