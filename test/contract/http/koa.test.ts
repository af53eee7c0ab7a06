import { once } from 'node:events'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Router from '@koa/router'
import Koa from 'koa'
import type { KoaContext } from 'onceonly/koa'
import { createProtect, operationStatus } from 'onceonly/koa'
import type { Act, Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'

const asker = (ctx: KoaContext): Asker => ({ header: (name) => ctx.req.headers[name] as string | undefined })

async function perform(ctx: KoaContext, { status = 200, headers = [], body, throws }: Act): Promise<void> {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  ctx.status = status
  for (const [name, value] of headers) ctx.append(name, value)
  if (body === undefined) {
    ctx.body = ''
    ctx.remove('content-type')
  } else if ('text' in body) ctx.body = body.text
  else if ('json' in body) ctx.body = body.json
  else if ('bytes' in body) ctx.body = Buffer.from(body.bytes)
  else if ('stream' in body) ctx.body = Readable.from(body.stream(), { objectMode: false })
  else {
    ctx.respond = false
    // The handler that writes by hand also answers for its errors.
    try {
      for await (const chunk of body.writes()) if (!ctx.res.write(chunk)) await once(ctx.res, 'drain')
      ctx.res.end()
    } catch (error) {
      ctx.res.destroy(error as Error)
    }
  }
}

async function serve(site: Site) {
  const app = new Koa()
  // Errors that a case provokes are its own business.
  app.silent = true
  const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  for (const route of site.routes) {
    const router = new Router(route.mount === undefined ? {} : { prefix: route.mount })
    const handler = protect(definitionFor(route.definition, asker), async (ctx, context) => {
      await perform(ctx, await route.act({ ...asker(ctx), context, json: () => bodyOf(ctx) }))
    })
    router.register(route.path, [route.method], handler)
    app.use(router.routes())
  }
  app.use(new Router().get(site.status.path, operationStatus(statusOptionsFor(site, asker))).routes())
  return listen(createServer((request, response) => void app.callback()(request, response)))
}

async function bodyOf(ctx: KoaContext): Promise<unknown> {
  const { body } = ctx.request as { body?: unknown }
  if (body !== undefined) return body
  const chunks: Buffer[] = []
  for await (const chunk of ctx.req) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString())
}

httpConformance({ test, serve })
