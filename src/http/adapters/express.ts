import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyTooLarge, hangUpSignal, incomingOf, readBody, sendAnswer, tapResponse } from '../capture-node.ts'
import type { HttpOptions, Protection } from '../protect.ts'
import { createRoute } from '../protect.ts'
import type { RouteDefinition } from '../route.ts'

/** As much of an Express request as we use. */
export interface ExpressRequest extends IncomingMessage {
  originalUrl: string
  body?: unknown
  rawBody?: Uint8Array
  /** Set while the request is protected. */
  onceonly?: Protection<unknown>
}

type Next = (error?: unknown) => void

/** For `express.json({ verify: keepRawBody })`: the fingerprint needs the bytes as they came. */
export function keepRawBody(request: IncomingMessage, _response: unknown, bytes: Uint8Array): void {
  ;(request as IncomingMessage & { rawBody?: Uint8Array }).rawBody = bytes
}

const MAX_BODY_BYTES = 1_024 * 1_024

/** Middleware for Express 5: `app.post('/payments', protect({ effect: 'external' }), handler)`; `req.onceonly` is the protection. */
export function idempotent<Tx, R extends ExpressRequest>(
  options: HttpOptions<R, Tx> & { readonly maxBodyBytes?: number },
) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES
  return (definition: RouteDefinition<R>) => {
    const route = createRoute(options, definition)
    async function protect(request: R, response: ServerResponse, next: Next): Promise<void> {
      const body = await bytesOf(request, maxBodyBytes)
      // A mounted router has cut its own prefix from `url`; the resource is the whole path.
      const incoming = incomingOf(request, body, request.originalUrl)
      const begun = await route.begin(incoming, request, hangUpSignal(response))
      switch (begun.kind) {
        case 'unprotected':
          return next()
        case 'answer':
          return sendAnswer(response, begun.answer)
        case 'run':
          request.onceonly = begun.protection as Protection<unknown>
          tapResponse(response, { maxBytes: route.maxAnswerBytes, buffered: route.buffered, finish: begun.finish })
          return next()
      }
    }
    return (request: R, response: ServerResponse, next: Next): void => {
      protect(request, response, next).catch((error: unknown) => {
        if (error instanceof BodyTooLarge) response.statusCode = error.status
        next(error)
      })
    }
  }
}

/** The raw bytes: kept by a parser, still unread, or, at worst, written again from what a parser made of them. */
async function bytesOf(request: ExpressRequest, maxBytes: number): Promise<Uint8Array> {
  if (request.rawBody !== undefined) return request.rawBody
  if (request.body instanceof Uint8Array) return request.body
  if (request.readableEnded || request.body !== undefined) {
    const { body } = request
    return Buffer.from(typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body))
  }
  const bytes = await readBody(request, maxBytes)
  request.rawBody = bytes
  // Parsers that come later find the stream read: they must not wait for it.
  if (request.headers['content-type']?.includes('json') === true && bytes.length > 0) {
    request.body = JSON.parse(Buffer.from(bytes).toString()) as unknown
  } else request.body = bytes
  ;(request as { _body?: boolean })._body = true
  return bytes
}
