import { once } from 'node:events'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type express from 'express'
import type { Request, Response } from 'express'
import { createProtect, keepRawBody, operationStatus } from 'onceonly/express'
import type { Act, Asker, Site } from 'onceonly/testing'
import { definitionFor, httpConformance, optionsFor, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'

const asker = (request: Request): Asker => ({ header: (name) => request.header(name) })

async function perform(response: Response, { status = 200, headers = [], body, throws }: Act): Promise<void> {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  response.status(status)
  for (const [name, value] of headers) response.append(name, value)
  if (body === undefined) response.end()
  else if ('text' in body) response.send(body.text)
  else if ('json' in body) response.json(body.json)
  else if ('bytes' in body) response.send(Buffer.from(body.bytes))
  else if ('stream' in body) await pipeline(Readable.from(body.stream(), { objectMode: false }), response)
  else {
    for await (const chunk of body.writes()) if (!response.write(chunk)) await once(response, 'drain')
    response.end()
  }
}

/** @param parser before the protection, as most applications have one; without it the protection reads by itself */
function serveWith(framework: typeof express, parser: express.RequestHandler | null) {
  return async (site: Site) => {
    const app = framework()
    if (parser !== null) app.use(parser)
    const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
    for (const route of site.routes) {
      const router = framework.Router()
      const method = route.method.toLowerCase() as 'post'
      router[method](
        route.path,
        protect(definitionFor(route.definition, asker), async (request: Request, response, context) => {
          await perform(response, await route.act({ ...asker(request), context, json: async () => bodyOf(request) }))
        }),
      )
      app.use(route.mount ?? '/', router)
    }
    app.get(site.status.path, operationStatus(statusOptionsFor(site, asker)))
    return listen(createServer(app))
  }
}

async function bodyOf(request: Request): Promise<unknown> {
  if (request.body !== undefined) return request.body as unknown
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString())
}

type Test = (name: string, body: () => Promise<void>) => unknown

/** The kit on a version of Express, without a parser and behind one. */
export function expressConformance(framework: typeof express, test: Test): void {
  httpConformance({ test, serve: serveWith(framework, null) })
  httpConformance({
    test: (name, body) => test(`behind express.json(): ${name}`, body),
    serve: serveWith(framework, framework.json({ verify: keepRawBody })),
  })
}
