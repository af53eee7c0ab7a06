import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { NodeListener, ReadMessage } from 'onceonly/node'
import { createProtect, operationStatus } from 'onceonly/node'
import type { Act, Asker, Served, Site } from 'onceonly/testing'
import { definitionFor, optionsFor, routeAt, statusOptionsFor } from 'onceonly/testing'
import { listen } from './listen.ts'

const asker = ({ headers }: IncomingMessage): Asker => ({ header: (name) => headers[name] as string | undefined })

async function perform(response: ServerResponse, { status = 200, headers = [], body, throws }: Act): Promise<void> {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  response.statusCode = status
  for (const [name, value] of headers) response.appendHeader(name, value)
  if (body === undefined) response.end()
  else if ('text' in body) response.end(body.text)
  else if ('bytes' in body) response.end(body.bytes)
  else if ('stream' in body) await pipeline(Readable.from(body.stream(), { objectMode: false }), response)
  else if ('writes' in body) {
    for await (const chunk of body.writes()) if (!response.write(chunk)) await once(response, 'drain')
    response.end()
  } else {
    // Headers by `writeHead`, as much old code has them.
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(body.json))
  }
}

async function jsonOf(request: ReadMessage): Promise<unknown> {
  const { rawBody } = request
  if (rawBody !== undefined) return JSON.parse(Buffer.from(rawBody).toString())
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString())
}

export async function serveNode(site: Site): Promise<Served> {
  const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
  const status = operationStatus(statusOptionsFor(site, asker))
  const listeners = new Map<object, NodeListener>(
    site.routes.map((route) => [
      route,
      protect(definitionFor(route.definition, asker), async (request, response, context) => {
        const act = await route.act({ ...asker(request), context, json: () => jsonOf(request) })
        await perform(response, act)
      }),
    ]),
  )
  const server = createServer((request, response) => {
    const route = routeAt(site, request.method ?? '', request.url ?? '')
    const listener = route === 'status' ? status : listeners.get(route ?? {})
    if (listener === undefined) response.writeHead(404).end()
    else void listener(request, response)
  })
  return listen(server)
}
