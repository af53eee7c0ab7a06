import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createStatus } from 'onceonly/http'
import type { Act, Asker, Served, Site } from 'onceonly/testing'
import { definitionFor, routeAt, statusOptionsFor } from 'onceonly/testing'
import { serve } from '../../../src/http/gateway/gateway.ts'
import type { Asked } from '../../../src/http/gateway/rule.ts'
import { createRule, timesOf } from '../../../src/http/gateway/rule.ts'
import { createSpool } from '../../../src/http/gateway/spool.ts'
import { createUpstream } from '../../../src/http/gateway/upstream.ts'
import { createProblemWriter } from '../../../src/http/protocol/problem-writer.ts'

const asker = ({ headers }: IncomingMessage): Asker => ({ header: (name) => headers[name] as string | undefined })
const askedBy = ({ message }: Asked): Asker => asker(message)

/** The routes of a site as a plain service has them: it knows nothing of keys. */
function plainServer(site: Site): Server {
  return createServer((request, response) => {
    const route = routeAt(site, request.method ?? '', request.url ?? '')
    if (route === null || route === 'status') return void response.writeHead(404).end()
    const json = async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      return JSON.parse(Buffer.concat(chunks).toString()) as unknown
    }
    const call = { ...asker(request), context: null, json }
    route
      .act(call)
      .then((act) => perform(response, act))
      .catch(() => {
        if (response.headersSent) response.destroy()
        else response.writeHead(500).end()
      })
  })
}

async function perform(response: ServerResponse, { status = 200, headers = [], body, throws }: Act): Promise<void> {
  // oxlint-disable-next-line typescript/only-throw-error -- a verdict is no error, and is thrown all the same.
  if (throws !== undefined) throw throws
  response.statusCode = status
  for (const [name, value] of headers) response.appendHeader(name, value)
  if (body === undefined) response.end()
  else if ('text' in body) response.end(body.text)
  else if ('bytes' in body) response.end(body.bytes)
  else if ('json' in body) response.setHeader('content-type', 'application/json').end(JSON.stringify(body.json))
  else if ('stream' in body) await pipeline(Readable.from(body.stream(), { objectMode: false }), response)
  else {
    for await (const chunk of body.writes()) {
      if (!response.write(chunk)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
    response.end()
  }
}

/** The suite's site behind a gateway. An adapter serves the status route, because the gateway has paths of its own. */
export async function serveGateway(site: Site): Promise<Served> {
  const server = plainServer(site)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const upstream = createUpstream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const { ledger, who, onError = () => {}, ...problems } = site.options
  const common = {
    upstream,
    passing: { trustForwarded: false, host: 'client' as const, regional: false },
    times: timesOf(),
  }
  const rules = site.routes.map((route) =>
    createRule({
      ...common,
      ledger,
      problems,
      onError,
      methods: [route.method],
      path: (route.mount ?? '') + route.path,
      definition: definitionFor(route.definition, askedBy),
      who: (asked) => who(askedBy(asked)),
      maxBodyBytes: site.maxBodyBytes,
    }),
  )
  const status = createStatus(statusOptionsFor(site, askedBy))
  const gateway = serve({
    status: (message) =>
      status
        .answer(message.url ?? '/', {
          message,
          spool: createSpool(message, { maxBytes: 0, bodyMs: 1 }),
          verified: null,
        })
        .catch(status.fault),
    rules,
    problems: createProblemWriter(problems),
    pass: { ...common, problems: createProblemWriter(problems) },
    links: [upstream],
    ownPath: '',
    onError,
    drainMs: 0,
  })
  const { port } = await gateway.listen(0)
  return {
    port,
    async stop() {
      await gateway.stop()
      server.close()
      server.closeAllConnections()
    },
  }
}
