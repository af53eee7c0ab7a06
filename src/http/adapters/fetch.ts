import {
  answeredInTime,
  captureResponse,
  incomingOf,
  readableAgain,
  readBody,
  responseOf,
} from '../protocol/capture-web.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import type { RouteDefinition } from '../protocol/route.ts'
import type { RouteContext, Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'

export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

export type FetchHandler<Tx> = (
  request: Request,
  /** Null where the request carries no key and needs none. */
  context: RouteContext<Tx> | null,
) => Response | Promise<Response>

export interface FetchOptions<Tx> extends HttpOptions<Request, Tx> {
  readonly maxBodyBytes?: number
}

/** Protects anything of the shape `(Request) => Response`. */
export function idempotent<Tx>(options: FetchOptions<Tx>) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES

  return (definition: RouteDefinition<Request>, handler: FetchHandler<Tx>) => {
    const route = createRoute(options, definition)
    async function protect(request: Request): Promise<Response> {
      // The body is read for the fingerprint; the handler gets a request that can be read again.
      let again = request
      const incoming = incomingOf(request, async () => {
        const bytes = await readBody(request, maxBodyBytes)
        again = readableAgain(request, bytes)
        return { bytes }
      })
      const begun = await route.begin(incoming, request, request.signal)
      switch (begun.kind) {
        case 'unprotected':
          return handler(again, null)
        case 'answer':
          return responseOf(begun.answer)
        case 'run':
          return answeredInTime(
            begun,
            request.signal,
            (signal) => answered(route, begun, again, signal, handler),
            route.fault,
          )
      }
    }
    return Object.assign(protect, { definition })
  }
}

async function answered<Tx>(
  route: Route<Request, Tx>,
  running: Running<Tx>,
  request: Request,
  signal: AbortSignal,
  handler: FetchHandler<Tx>,
): Promise<Response> {
  const { method } = request
  const capture = { method, signal, maxBytes: route.maxAnswerBytes, buffered: route.buffered, running }
  let response: Response
  try {
    response = checked(await running.inside(() => handler(request, running.context)))
  } catch (thrown) {
    // Whatever serves us would answer in its own words, which no retry could be given again.
    return captureResponse(responseOf(route.fault(thrown)), { ...capture, thrown })
  }
  return captureResponse(response, capture)
}

/** By shape: there are more classes of that name than the global one. A handler that forgot its answer has failed. */
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
