import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fastify from 'fastify'
import { createProtect, onceonly, operationStatus } from 'onceonly/fastify'
import type { Act, Asker, Served, Site, SiteRoute } from 'onceonly/testing'
import { definitionFor, optionsFor, statusOptionsFor } from 'onceonly/testing'

const asker = ({ headers }: FastifyRequest): Asker => ({ header: (name) => headers[name] as string | undefined })

async function perform(reply: FastifyReply, { status = 200, headers = [], body, throws }: Act): Promise<unknown> {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  reply.code(status)
  const names = new Set(headers.map(([name]) => name))
  for (const name of names) {
    const values = headers.filter(([each]) => each === name).map(([, value]) => value)
    reply.header(name, values.length === 1 ? values[0] : values)
  }
  if (body === undefined) return reply.send()
  if ('text' in body) return reply.send(body.text)
  if ('json' in body) return reply.send(body.json)
  if ('bytes' in body) return reply.send(Buffer.from(body.bytes))
  if ('stream' in body) return reply.send(Readable.from(body.stream(), { objectMode: false }))
  reply.hijack()
  reply.raw.statusCode = status
  for (const [name, value] of headers) reply.raw.appendHeader(name, value)
  // Code that hijacks a reply also handles its errors.
  try {
    for await (const chunk of body.writes()) if (!reply.raw.write(chunk)) await once(reply.raw, 'drain')
    reply.raw.end()
  } catch (error) {
    reply.raw.destroy(error as Error)
  }
  return reply
}

export async function serveFastify(site: Site): Promise<Served> {
  const app = fastify({ forceCloseConnections: true, bodyLimit: site.maxBodyBytes })
  for (const type of ['application/octet-stream', 'application/x-www-form-urlencoded']) {
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  }
  app.addContentTypeParser(/^multipart\//, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  await app.register(onceonly)
  for (const route of site.routes) {
    if (route.mount === undefined) add(app, site, route)
    else await app.register(async (child) => add(child, site, route), { prefix: route.mount })
  }
  app.get(site.status.path, operationStatus(statusOptionsFor(site, asker)))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, stop: () => app.close() }
}

function add(app: FastifyInstance, site: Site, route: SiteRoute): void {
  const protect = createProtect(optionsFor(site, asker))
  const handler = protect(definitionFor(route.definition, asker), async (request, reply, context) =>
    perform(reply, await route.act({ ...asker(request), context, json: async () => request.body })),
  )
  app.route({ method: route.method, url: route.path, handler })
}
