import type { IncomingMessage } from 'node:http'
import { bodyOnWire, parsedJson, readBody } from '../protocol/capture-node.ts'
import type { IncomingBody } from '../protocol/exchange.ts'
import { bodyConsumed } from '../protocol/options.ts'
import type { Awaitable } from '../protocol/thenable.ts'

/**
 * Marks a request whose body the adapter read itself: parsers undo the content encoding before they show a body. On the
 * request itself, because a table that holds requests weakly costs every garbage collection.
 */
const readHere = Symbol('onceonly.readHere')

/** The parts of a request that the adapter reads and sets. */
export interface ReadRequest extends IncomingMessage {
  readonly originalUrl: string
  body?: unknown
  rawBody?: Uint8Array
  [readHere]?: true
}

/** The raw bytes: kept by a parser, or still unread; otherwise what a parser made of them. */
export function bodyOf(
  request: ReadRequest,
  maxBytes: number,
  advice = 'use express.json({ verify: keepRawBody }) in place of the parser that read it',
): Awaitable<IncomingBody> {
  const inflated = request[readHere] !== true && request.headers['content-encoding'] !== undefined
  if (request.rawBody !== undefined) return { bytes: request.rawBody, inflated }
  if (request.body instanceof Uint8Array) return { bytes: request.body, inflated }
  if (typeof request.body === 'string') return { bytes: Buffer.from(request.body), inflated }
  if (request.body !== undefined && !isUnparsed(request)) return { parsed: request.body }
  if (request.readableDidRead && bodyOnWire(request)) {
    const { method = 'GET', originalUrl: target } = request
    throw bodyConsumed({ method, target }, advice)
  }
  return request.readableEnded
    ? keep(request, Buffer.alloc(0))
    : readBody(request, maxBytes).then((bytes) => keep(request, bytes))
}

function keep(request: ReadRequest, bytes: Uint8Array): IncomingBody {
  request[readHere] = true
  request.rawBody = bytes
  // Parsers that come later find the stream at its end, and keep what stands here.
  request.body = parsedJson(request, bytes)
  return { bytes }
}

/** Express 4's parsers set `{}` where they read nothing. */
function isUnparsed({ body, readableDidRead }: ReadRequest): boolean {
  return !readableDidRead && typeof body === 'object' && body !== null && Object.keys(body).length === 0
}
