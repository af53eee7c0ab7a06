import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { HttpEvent, HttpEventV1, HttpEventV2, HttpResult, LambdaContext } from 'onceonly/lambda'
import { createProtect, operationStatus } from 'onceonly/lambda'
import type { Asker, Served, Site } from 'onceonly/testing'
import { definitionFor, optionsFor, routeAt, statusOptionsFor } from 'onceonly/testing'
import { listen } from '../../contract/http/listen.ts'
import { responseOf } from '../../contract/http/web.ts'

export type Format = '1.0' | '2.0'

/** An invocation that may take this long. */
function invocation(leftMs = 30_000): LambdaContext {
  const endsAt = Date.now() + leftMs
  return { awsRequestId: 'c6af9ac6-7b61-11e6-9a41-93e8deadbeef', getRemainingTimeInMillis: () => endsAt - Date.now() }
}

const asker = (event: HttpEvent): Asker => ({
  header: (name) =>
    Object.entries(event.headers ?? {}).find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1],
})

/** As API Gateway does it: a real server in front, whose requests become events. */
export function serveOn(format: Format) {
  return async (site: Site): Promise<Served> => {
    const protect = createProtect({ ...optionsFor(site, asker), maxBodyBytes: site.maxBodyBytes })
    const status = operationStatus(statusOptionsFor(site, asker))
    const functions = new Map(
      site.routes.map((route) => [
        route as object,
        protect(definitionFor(route.definition, asker), async (event, _context, once) => {
          const json = async () => JSON.parse(Buffer.from(event.body ?? '', encodingOf(event)).toString()) as unknown
          return responseOf(await route.act({ ...asker(event), context: once, json }))
        }),
      ]),
    )
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      const route = routeAt(site, request.method ?? '', request.url ?? '')
      const call = route === 'status' ? status : functions.get(route ?? {})
      if (call === undefined) return void response.writeHead(404).end()
      send(response, await call(await eventOf(request, format), invocation()))
    }
    return listen(createServer((request, response) => void answer(request, response)))
  }
}

const encodingOf = ({ isBase64Encoded }: HttpEvent) => (isBase64Encoded ? 'base64' : 'utf8')

async function eventOf(request: IncomingMessage, format: Format): Promise<HttpEvent> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const body = { body: bytes.length === 0 ? null : bytes.toString('base64'), isBase64Encoded: bytes.length > 0 }
  const { pathname, search, searchParams } = new URL(request.url ?? '/', 'http://host')
  const lists = Object.entries(request.headersDistinct).map(([name, values]) => [name, values ?? []] as const)
  const headers = Object.fromEntries(lists.map(([name, values]) => [name, values.join(',')]))
  if (format === '1.0') {
    const last = lists.map(([name, values]) => [name, values.at(-1)] as const)
    const query = Object.fromEntries([...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)]))
    return {
      httpMethod: request.method ?? 'GET',
      path: pathname,
      headers: Object.fromEntries(last),
      multiValueHeaders: Object.fromEntries(lists),
      multiValueQueryStringParameters: query,
      requestContext: { domainName: 'api.example.com' },
      ...body,
    } satisfies HttpEventV1
  }
  return {
    version: '2.0',
    rawPath: `/prod${pathname}`,
    rawQueryString: search.slice(1),
    headers,
    requestContext: { domainName: 'api.example.com', stage: 'prod', http: { method: request.method ?? 'GET' } },
    ...(body.body === null ? { isBase64Encoded: false } : { body: body.body, isBase64Encoded: true }),
  } satisfies HttpEventV2
}

function send(response: ServerResponse, result: HttpResult): void {
  const { statusCode, headers, multiValueHeaders, cookies = [], body, isBase64Encoded } = result
  for (const [name, value] of Object.entries(multiValueHeaders ?? headers)) response.setHeader(name, value)
  if (cookies.length > 0) response.setHeader('set-cookie', cookies)
  response.writeHead(statusCode).end(Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'))
}
