import type { IncomingMessage } from 'node:http'
import type { HeaderList } from '../protocol/exchange.ts'
import { CLIENT_HEADER, FORMER_HEADER, REGION_HEADER } from '../region/token.ts'

/** Names and values in turn, as Node gives and takes them: order, spelling and repeated lines are kept. */
export type RawHeaders = readonly string[]

/**
 * Of one connection, not of the message (RFC 9110, section 7.6.1), and what frames a message: the gateway frames it
 * again.
 */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Answered by the gateway itself.
  'expect',
  // Between regions only.
  REGION_HEADER,
  CLIENT_HEADER,
  FORMER_HEADER,
])

/** A client must not be able to take these away from the upstream by calling them headers of its connection. */
const endToEnd =
  /^(host|authorization|cookie|content-.*|idempotency-key|if-.*|x-forwarded-.*|forwarded|origin|set-cookie|location)$/

/** What is to be known of a name. */
interface HeaderName {
  readonly lower: string
  /**
   * CGI, WSGI, Rack and PHP read `_` and `-` as the same: whatever is decided about a name is decided about both
   * spellings.
   */
  readonly dashed: string
  readonly kind: 'hop' | 'forwarded' | 'host' | 'accept-encoding' | 'content-length' | 'method' | 'other'
}

/** Clients and services send the same few names over and over, in the same spellings. */
const known = new Map<string, HeaderName>()
const MOST_KNOWN = 1_000

function nameOf(name: string): HeaderName {
  const found = known.get(name)
  if (found !== undefined) return found
  const lower = name.toLowerCase()
  const dashed = lower.replaceAll('_', '-')
  const read: HeaderName = { lower, dashed, kind: kindOf(dashed) }
  if (known.size < MOST_KNOWN) known.set(name, read)
  return read
}

/** Headers by which frameworks let a request say that it is of another method. */
const methodHeaders = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

function kindOf(dashed: string): HeaderName['kind'] {
  if (hopByHop.has(dashed)) return 'hop'
  if (dashed.startsWith('x-forwarded-') || dashed === 'forwarded' || dashed === 'x-real-ip') return 'forwarded'
  if (methodHeaders.has(dashed)) return 'method'
  return dashed === 'host' || dashed === 'accept-encoding' || dashed === 'content-length' ? dashed : 'other'
}

/** The methods that a request asks its service to take it for. */
export function methodsAskedFor(headers: IncomingMessage['headers']): readonly string[] {
  let methods: string[] | null = null
  for (const name of Object.keys(headers)) {
    if (nameOf(name).kind !== 'method') continue
    methods ??= []
    methods.push(...String(headers[name]).split(','))
  }
  return methods === null ? [] : methods.map((each) => each.trim().toUpperCase())
}

/** The names that a message itself declares to be of its connection; Node joins several lines. Null for the usual ones. */
export function connectionOnly({ headers }: IncomingMessage): ReadonlySet<string> | null {
  const { connection } = headers
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return null
  let names: Set<string> | null = null
  for (const part of connection.split(',')) {
    const name = part.trim().toLowerCase()
    if (name === '' || name === 'close' || hopByHop.has(name) || endToEnd.test(name)) continue
    names ??= new Set()
    names.add(name)
  }
  return names
}

/** Node keeps the first of several; an upstream may go by the last. */
export function hostLines(raw: RawHeaders): number {
  let lines = 0
  for (let at = 0; at < raw.length; at += 2) if (nameOf(raw[at] as string).kind === 'host') lines++
  return lines
}

/** How requests are forwarded to upstreams. */
export interface Passing {
  readonly trustForwarded: boolean
  readonly host: 'client' | 'upstream'
  /** Whether there are other regions, which may have sent a request on to here. */
  readonly regional: boolean
}

/** The original client of a request: its scheme, and the addresses that it came by, as far as they are trusted. */
export interface Client {
  readonly proto: string
  readonly addresses: string
}

/** As this gateway sees it. */
export function clientOf({ socket, headers }: IncomingMessage, trustForwarded: boolean): Client {
  const { 'x-forwarded-for': before, 'x-forwarded-proto': forwardedProto } = trustForwarded ? headers : {}
  const address = socket.remoteAddress ?? 'unknown'
  const proto = String(forwardedProto ?? ('encrypted' in socket ? 'https' : 'http'))
  return { proto, addresses: before === undefined ? address : `${String(before)}, ${address}` }
}

export function writtenClient({ proto, addresses }: Client): string {
  return `${proto} ${addresses}`
}

/**
 * The client as reported by the region that a request first came to. Only for requests whose token was verified: any
 * other claim is ignored.
 */
export function clientBehind({ headers }: IncomingMessage, { regional }: Passing): Client | null {
  const value = headers[CLIENT_HEADER]
  if (!regional || headers[REGION_HEADER] === undefined || typeof value !== 'string') return null
  const [proto = '', ...addresses] = value.split(' ')
  return { proto, addresses: addresses.join(' ') }
}

export interface RequestHeadersOptions {
  readonly message: IncomingMessage
  readonly trustForwarded: boolean
  /** The client behind it, where that is not the one connected here. */
  readonly client?: Client | null
  /** The `Host` that the upstream sees; the client's own, when null. */
  readonly host: string | null
  /** Of a body that was read whole, or zero where there is none. Left out, the client's own framing stays. */
  readonly length?: number
  /** Ask for the answer as it is: what is recorded must be readable by every retry. */
  readonly identityEncoding?: boolean
  readonly added?: RawHeaders
}

/** The headers for the upstream. */
export function requestHeaders(options: RequestHeadersOptions): string[] {
  const { message, trustForwarded, host, length, identityEncoding = false } = options
  const { proto, addresses } = options.client ?? clientOf(message, trustForwarded)
  const raw = message.rawHeaders
  const dropped = connectionOnly(message)
  const headers: string[] = []
  let sawHost = false
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string
    const { lower, dashed, kind } = nameOf(name)
    if (kind === 'hop' || dropped?.has(lower) === true) continue
    if (kind === 'accept-encoding' && identityEncoding) continue
    if (kind === 'content-length' && length !== undefined) continue
    if (kind === 'host' && host !== null) continue
    if (kind === 'forwarded') {
      if (!trustForwarded || dashed === 'x-forwarded-for' || dashed === 'x-forwarded-proto') continue
      sawHost ||= lower === 'x-forwarded-host'
    }
    headers.push(name, raw[at + 1] as string)
  }
  if (host !== null) headers.push('Host', host)
  headers.push('X-Forwarded-For', addresses, 'X-Forwarded-Proto', proto)
  if (!sawHost && message.headers.host !== undefined) headers.push('X-Forwarded-Host', message.headers.host)
  if (identityEncoding) headers.push('Accept-Encoding', 'identity')
  if (length !== undefined && (length > 0 || hasBodyHeaders(message))) headers.push('Content-Length', String(length))
  if (length === undefined && message.headers['transfer-encoding'] !== undefined) {
    headers.push('Transfer-Encoding', 'chunked')
  }
  if (options.added !== undefined) headers.push(...options.added)
  return headers
}

function hasBodyHeaders({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

/** The headers for the client. */
export function answerHeaders(answer: IncomingMessage): string[] {
  const raw = answer.rawHeaders
  const dropped = connectionOnly(answer)
  const headers: string[] = []
  for (let at = 0; at < raw.length; at += 2) {
    const { lower, kind } = nameOf(raw[at] as string)
    if (kind !== 'hop' && dropped?.has(lower) !== true) headers.push(raw[at] as string, raw[at + 1] as string)
  }
  return headers
}

/** The same as a record has it. */
export function headerList(raw: RawHeaders): HeaderList {
  const list: [string, string][] = []
  for (let at = 0; at < raw.length; at += 2) list.push([nameOf(raw[at] as string).lower, raw[at + 1] as string])
  return list
}

/** The target for an upstream: without scheme and host, which a client may have sent too. */
export function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('/') ? path : `/${path}`
}
