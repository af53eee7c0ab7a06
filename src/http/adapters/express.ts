import type { IncomingMessage, ServerResponse } from 'node:http'
import { isVerdict } from '../../ledger/core/verdict.ts'
import { hangUpSignal, incomingOf, readBody, sendAnswer } from '../protocol/capture-node.ts'
import { answerEarly } from '../protocol/early-node.ts'
import type { IncomingBody } from '../protocol/exchange.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import type { HttpOptions } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import type { Defined, RouteDefinition } from '../protocol/route.ts'
import type { RouteContext } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import type { Tap } from '../protocol/tap-node.ts'
import { tapResponse } from '../protocol/tap-node.ts'

export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

/** As much of an Express request as we use. */
export interface ExpressRequest extends IncomingMessage {
  originalUrl: string
  body?: unknown
  rawBody?: Uint8Array
  /** Set while the request is protected. */
  onceonly?: RouteContext<unknown>
}

export interface ExpressOptions<R, Tx> extends HttpOptions<R, Tx> {
  readonly maxBodyBytes?: number
}

type Next = (error?: unknown) => void
type Middleware<R> = (request: R, response: ServerResponse, next: Next) => void
type ErrorMiddleware<R> = (error: unknown, request: R, response: ServerResponse, next: Next) => void

/** For `express.json({ verify: keepRawBody })`: the fingerprint needs the bytes as they came. */
export function keepRawBody(request: IncomingMessage, _response: unknown, bytes: Uint8Array): void {
  ;(request as ExpressRequest).rawBody = bytes
}

/** Bodies that a parser inflated before it handed them to `keepRawBody`, or that we read ourselves. */
const readByUs = new WeakSet<object>()
const taps = new WeakMap<object, Tap>()

/**
 * Middleware for Express 5: `app.post('/payments', protect({ effect: 'external' }), handler, noteErrors)`;
 * `request.onceonly` is the context of the effect.
 */
export function idempotent<Tx, R extends ExpressRequest>(options: ExpressOptions<R, Tx>) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES

  return (definition: RouteDefinition<R>): Middleware<R> & Defined<R> => {
    const route = createRoute(options, definition)

    async function goOn(request: R, response: ServerResponse, next: Next): Promise<void> {
      try {
        await protect(request, response, next)
      } catch (error) {
        next(error)
      }
    }

    async function protect(request: R, response: ServerResponse, next: Next): Promise<void> {
      // A mounted router has cut its own prefix from `url`; the resource is the whole path.
      const incoming = incomingOf(request, () => bodyOf(request, maxBodyBytes), request.originalUrl)
      const begun = await route.begin(incoming, request, hangUpSignal(response))
      switch (begun.kind) {
        case 'unprotected':
          return next()
        case 'answer':
          return sendAnswer(response, begun.answer)
        case 'run': {
          request.onceonly = begun.context as RouteContext<unknown>
          const { maxAnswerBytes: maxBytes, buffered } = route
          taps.set(request, tapResponse(response, { maxBytes, buffered, running: begun }))
          answerEarly(response, begun.early)
          begun.inside(next)
        }
      }
    }
    return Object.assign((request: R, response: ServerResponse, next: Next) => void goOn(request, response, next), {
      definition,
    })
  }
}

/**
 * Error middleware, after the handlers and before your own: the thrown error says more than the response made of it. Without
 * it a 5xx is all that is known of a handler that threw.
 */
export const noteErrors: ErrorMiddleware<object> = (error, request, _response, next) => {
  taps.get(request)?.threw(error)
  // A verdict is our own wrapper: error handlers need the error itself.
  next(isVerdict(error) ? error.error : error)
}

/** The raw bytes: kept by a parser, still unread, or, at worst, what a parser made of them. */
async function bodyOf(request: ExpressRequest, maxBytes: number): Promise<IncomingBody> {
  // Express' own parsers decompress a body before handlers see it.
  const inflated = !readByUs.has(request)
  if (request.rawBody !== undefined) return { bytes: request.rawBody, inflated }
  if (request.body instanceof Uint8Array) return { bytes: request.body, inflated }
  if (typeof request.body === 'string') return { bytes: Buffer.from(request.body), inflated }
  if (request.body !== undefined) return { parsed: request.body }
  const bytes = request.readableEnded ? Buffer.alloc(0) : await readBody(request, maxBytes)
  readByUs.add(request)
  request.rawBody = bytes
  // Parsers that come later find the stream at its end, and leave alone what stands here.
  request.body = parsedBy(request.headers['content-type'] ?? '', bytes)
  return { bytes }
}

function parsedBy(type: string, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined
  if (!/^[^;]*[/+]json\s*(;|$)/i.test(type)) return bytes
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as unknown
  } catch {
    // It is refused as soon as it is looked at for its fingerprint.
    return undefined
  }
}

/** `GET /operations/{id}` as a handler of Express. */
export function operationStatus<Tx, R extends ExpressRequest>(options: StatusOptions<R, Tx>): Middleware<R> {
  const status = createStatus(options)
  async function answer(request: R, response: ServerResponse, next: Next): Promise<void> {
    try {
      sendAnswer(
        response,
        await status.answer(request.originalUrl, request, incomingOf(request, noBody, request.originalUrl)),
      )
    } catch (error) {
      next(error)
    }
  }
  return (request, response, next) => void answer(request, response, next)
}
