import {
  answeredInTime,
  captureResponse,
  incomingOf,
  readableAgain,
  readBody,
  responseOf,
} from '../protocol/capture-web.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import { bodyConsumed, checkHandler } from '../protocol/options.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute } from '../protocol/route.ts'
import type { Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

export interface FetchOptions<Tx> extends HttpOptions<Request, Tx> {
  /** The largest body that is read, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

/** What a server passes beside the request: `{ params }` in Next.js, the connection in Deno. */
export interface FetchExtra {
  readonly params?: unknown
}

/** The second argument may be left out where its type allows an empty object, which the handler gets then. */
export type ProtectedFetch<R, A> = (Record<never, never> extends A ? (request: R) => Promise<Response> : unknown) &
  ((request: R, extra: A) => Promise<Response>) &
  ProtectedRoute<Request>

/** Takes the definition and the handler of one route, and returns what a server of `fetch` handlers takes as its handler. */
export interface FetchProtect<Tx> {
  <E extends EffectKind, K extends KeyRule = 'required', R extends Request = Request, A = FetchExtra>(
    definition: DefinitionOf<Request, E, K>,
    handler: (request: R, extra: A, context: HandlerContext<Tx, E, K>) => Response | Promise<Response>,
  ): ProtectedFetch<R, A>
}

/**
 * Protects functions of the shape `(request, extra) => Response`: routes of Next.js, Bun and Deno, and workers.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createProtect } from 'onceonly/fetch'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shared' }) })
 *
 * type Extra = { params: Promise<{ id: string }> }
 * export const POST = protect({ name: 'order.place', effect: 'transaction' }, async (request, extra: Extra, { tx }) => {
 *   const { id } = await extra.params
 *   await tx.query('insert into orders (id, item) values (?, ?)', [id, await request.text()])
 *   return Response.json({ id }, { status: 201 })
 * })
 * ```
 */
export function createProtect<Tx>(options: FetchOptions<Tx>): FetchProtect<Tx> {
  checkOptions(options, ['maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const handle = handler as unknown as Handler<Tx>
    async function protect(request: Request, extra: unknown = {}): Promise<Response> {
      // The body is read for the fingerprint; the handler gets a request that can be read again.
      let again = request
      const incoming = incomingOf(request, async () => {
        if (request.bodyUsed) throw bodyConsumed(incoming, 'read it in the handler, or read a request.clone() before')
        const bytes = await readBody(request, maxBodyBytes)
        again = readableAgain(request, bytes)
        return { bytes }
      })
      const beginning = route.begin(incoming, request, request.signal)
      const begun = beginning instanceof Promise ? await beginning : beginning
      switch (begun.kind) {
        case 'unprotected':
          return handle(again, extra, null)
        case 'answer':
          return responseOf(begun.answer)
        case 'run': {
          const run = () => handle(again, extra, begun.context)
          const { method, signal } = request
          return answeredInTime(begun, signal, (client) => answered(route, begun, method, client, run), route.fault)
        }
      }
    }
    return Object.assign(protect, { definition }) as never
  }
}

type Handler<Tx> = (
  request: Request,
  extra: unknown,
  context: HandlerContext<Tx, EffectKind, 'optional'>,
) => Response | Promise<Response>

async function answered<Tx>(
  route: Route<Request, Tx>,
  running: Running<Tx>,
  method: string,
  signal: AbortSignal,
  handler: () => Response | Promise<Response>,
): Promise<Response> {
  const capture = { method, signal, maxBytes: route.maxAnswerBytes, buffered: route.buffered, running }
  let response: Response
  try {
    response = checked(await running.inside(handler))
  } catch (thrown) {
    // A server that answered for it would use words that no retry could be given again.
    return captureResponse(responseOf(route.fault(thrown)), { ...capture, thrown })
  }
  return captureResponse(response, capture)
}

/** By shape: there are more classes of that name than the global one. A handler that forgot its response has failed. */
function checked(given: Response | undefined): Response {
  if (typeof given?.status === 'number' && given.headers !== undefined) return given
  throw new TypeError('The handler returned no Response.')
}

/** `GET /operations/{id}` as `(Request) => Response`. */
export function operationStatus<Tx>(options: StatusOptions<Request, Tx>) {
  const status = createStatus(options)
  return async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    return responseOf(await status.answer(pathname, request, incomingOf(request, noBody)).catch(status.fault))
  }
}
