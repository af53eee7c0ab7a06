import { isUtf8 } from 'node:buffer'
import { OnceError } from '../../ledger/core/errors.ts'
import { kindOf } from '../../ledger/core/option-names.ts'
import type { HttpEvent, HttpEventV1, HttpEventV2, HttpResult, HttpReturn, PartialResult } from './events.ts'

/** The event as a web-standard request. @param signal fires shortly before Lambda ends the function */
export function requestOf(event: HttpEvent, signal: AbortSignal): Request {
  const { method, target, headers, host } = isV2(event) ? partsOfV2(event) : partsOfV1(event)
  const url = new URL(`https://${host}${target}`)
  const body = method === 'GET' || method === 'HEAD' ? null : bodyOf(event)
  return new Request(url, { method, headers, body, signal })
}

interface RequestParts {
  readonly method: string
  readonly target: string
  readonly headers: Headers
  readonly host: string
}

function isV2(event: HttpEvent): event is HttpEventV2 {
  const { rawPath, httpMethod, path, requestContext } = (event ?? {}) as Partial<HttpEventV1 & HttpEventV2>
  if (rawPath !== undefined && typeof requestContext?.http?.method === 'string') return true
  if (httpMethod !== undefined && typeof path === 'string') return false
  throw new OnceError(
    'bad_option',
    `This event (${kindOf(event)}) is no request of API Gateway (1.0 or 2.0) or of a function URL: connect the function to one of them, or use handleSqsBatch for batches of SQS.`,
  )
}

function partsOfV1(event: HttpEventV1): RequestParts {
  const headers = new Headers()
  const lists = Object.entries(event.multiValueHeaders ?? {})
  for (const [name, values = []] of lists) for (const value of values) headers.append(name, value)
  if (lists.length === 0) {
    for (const [name, value] of Object.entries(event.headers ?? {}))
      if (value !== undefined) headers.append(name, value)
  }
  const query = new URLSearchParams()
  const many = Object.entries(event.multiValueQueryStringParameters ?? {})
  for (const [name, values = []] of many) for (const value of values) query.append(name, value)
  if (many.length === 0) {
    for (const [name, value = ''] of Object.entries(event.queryStringParameters ?? {})) query.append(name, value)
  }
  const host = hostOf(headers, event.requestContext.domainName)
  return { method: event.httpMethod, target: withQuery(event.path, query.toString()), headers, host }
}

function partsOfV2(event: HttpEventV2): RequestParts {
  const headers = new Headers()
  for (const [name, value] of Object.entries(event.headers)) if (value !== undefined) headers.append(name, value)
  if (event.cookies !== undefined && event.cookies.length > 0) headers.set('cookie', event.cookies.join('; '))
  const { http, domainName, stage = '$default' } = event.requestContext
  // The same resource in every stage, as in format 1.0.
  const staged = stage !== '$default' && (event.rawPath === `/${stage}` || event.rawPath.startsWith(`/${stage}/`))
  const path = staged ? event.rawPath.slice(stage.length + 1) || '/' : event.rawPath
  return {
    method: http.method,
    target: withQuery(path, event.rawQueryString),
    headers,
    host: hostOf(headers, domainName),
  }
}

function withQuery(path: string, query: string): string {
  return query === '' ? path : `${path}?${query}`
}

function hostOf(headers: Headers, domainName: string | undefined): string {
  return domainName ?? headers.get('host') ?? 'lambda.invalid'
}

function bodyOf({ body, isBase64Encoded }: HttpEvent): Uint8Array<ArrayBuffer> | null {
  if (body === null || body === undefined || body === '') return null
  return new Uint8Array(Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8'))
}

/** What a function returned, as a response that can be recorded. */
export function responseOf(given: HttpReturn | undefined): Response {
  if (isResponse(given)) return given
  if (typeof given === 'string') return new Response(given, { headers: { 'content-type': 'application/json' } })
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(
      'The function returned no response: return { statusCode, body }, a Response, or a value for JSON.',
    )
  }
  const { statusCode } = given as PartialResult
  return statusCode === undefined ? Response.json(given) : responseOfResult(given as PartialResult, statusCode)
}

/** By shape: there are more classes of that name than the global one. */
function isResponse(given: unknown): given is Response {
  const { status, headers, arrayBuffer } = (given ?? {}) as Partial<Response>
  return typeof status === 'number' && headers !== undefined && typeof arrayBuffer === 'function'
}

function responseOfResult(result: PartialResult, status: number): Response {
  const { headers = {}, multiValueHeaders = {}, cookies = [], body = '', isBase64Encoded = false } = result
  const list = new Headers()
  const many = new Set(Object.keys(multiValueHeaders).map((name) => name.toLowerCase()))
  for (const [name, values] of Object.entries(multiValueHeaders))
    for (const value of values) list.append(name, String(value))
  for (const [name, value] of Object.entries(headers))
    if (!many.has(name.toLowerCase())) list.append(name, String(value))
  for (const cookie of cookies) list.append('set-cookie', cookie)
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8')
  // API Gateway's own default.
  if (bytes.length > 0 && !list.has('content-type')) list.set('content-type', 'application/json')
  return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers: list })
}

/** The response in the format of its request. */
export async function resultOf(event: HttpEvent, response: Response): Promise<HttpResult> {
  const bytes = Buffer.from(await response.arrayBuffer())
  const asText = isText(response.headers) && isUtf8(bytes)
  const body = bytes.toString(asText ? 'utf8' : 'base64')
  const { status: statusCode } = response
  const cookies = response.headers.getSetCookie()
  const headers: Record<string, string> = {}
  for (const [name, value] of response.headers) if (name !== 'set-cookie') headers[name] = value
  const common = { statusCode, headers, body, isBase64Encoded: !asText }
  if (isV2(event)) return cookies.length === 0 ? common : { ...common, cookies }
  const multiValueHeaders = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  if (cookies.length > 0) multiValueHeaders['set-cookie'] = cookies
  return { ...common, multiValueHeaders }
}

const textTypes = /^(text\/|application\/(json|xml|javascript|x-www-form-urlencoded|graphql)|[^;]*\+(json|xml))/i

/** A body without a type is text, as long as it is UTF-8; one with a content encoding never is. */
function isText(headers: Headers): boolean {
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity') return false
  const type = headers.get('content-type')
  return type === null || textTypes.test(type)
}
