import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyOnWire, NodeIncoming, readBody, sendAnswer } from '../protocol/capture-node.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { isClosing, MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import { handleOnNode } from '../protocol/handle-node.ts'
import { bodyConsumed, checkHandler } from '../protocol/options.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute } from '../protocol/route.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import type { Tap } from '../protocol/tap-node.ts'
import type { Awaitable } from '../protocol/thenable.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

/** A request whose raw bytes are read before its handler runs; a request without a key still has its body unread. */
export type ReadMessage = IncomingMessage & { rawBody?: Uint8Array }

export interface NodeOptions<Tx> extends HttpOptions<ReadMessage, Tx> {
  /** The largest body that is read, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

/** As `http.createServer` takes it. The promise ends when the handler has. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Takes the definition and the handler of one route, and returns what Node's own server takes as its handler. */
export interface NodeProtect<Tx> {
  <E extends EffectKind, K extends KeyRule = 'required'>(
    definition: DefinitionOf<ReadMessage, E, K>,
    handler: (request: ReadMessage, response: ServerResponse, context: HandlerContext<Tx, E, K>) => unknown,
  ): NodeListener & ProtectedRoute<ReadMessage>
}

/**
 * Protects handlers of Node's own `http` server.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { createLedger } from 'onceonly'
 * import { createProtect } from 'onceonly/node'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shared' }) })
 * const pay = protect({ name: 'payment.create', effect: 'external' }, (_request, response, { effectKey }) => {
 *   response.writeHead(201).end(effectKey)
 * })
 * createServer((request, response) => void pay(request, response)).listen(3000)
 * ```
 */
export function createProtect<Tx>(options: NodeOptions<Tx>): NodeProtect<Tx> {
  checkOptions(options, ['maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const handle = handler as Handler<Tx>

    function protect(request: ReadMessage, response: ServerResponse): Awaitable<void> {
      const incoming = new NodeIncoming(request, response, request.url ?? '/', async () => {
        if (request.readableDidRead && bodyOnWire(request)) {
          throw bodyConsumed(incoming, 'let protect read it, and use `request.rawBody`')
        }
        request.rawBody = await readBody(request, maxBodyBytes)
        return { bytes: request.rawBody }
      })
      const threw = (error: unknown, tap: Tap) => answerFault(route, response, error, tap)
      const handler = { route, handle: (context: Context<Tx>) => handle(request, response, context), threw }
      return handleOnNode(handler, incoming, request, response)
    }

    function listener(request: IncomingMessage, response: ServerResponse): Promise<void> {
      try {
        const over = protect(request, response)
        if (over instanceof Promise) return over.catch((error: unknown) => answerFault(route, response, error, null))
      } catch (error) {
        answerFault(route, response, error, null)
      }
      return OVER
    }
    return Object.assign(listener, { definition })
  }
}

/** For all requests that were answered at once. */
const OVER = Promise.resolve()

type Context<Tx> = HandlerContext<Tx, EffectKind, 'optional'>
type Handler<Tx> = (request: ReadMessage, response: ServerResponse, context: Context<Tx>) => unknown

/** No framework answers for a handler that threw, and a rejection would end the process. */
function answerFault<Tx>(
  route: Route<ReadMessage, Tx>,
  response: ServerResponse,
  error: unknown,
  tap: Tap | null,
): void {
  // The whole answer was given to a client that had left.
  if (tap?.phase === 'ended' && isClosing(error)) return
  tap?.threw(error)
  const answer = route.fault(error)
  if (tap?.phase === 'ended' || response.writableEnded) return
  // A response that has begun cannot be taken back: cutting it is the only way to say that it is not whole.
  if (tap?.phase === 'begun' || response.headersSent) response.destroy()
  else sendAnswer(response, answer)
}

/** `GET /operations/{id}` as a listener of Node's own server. */
export function operationStatus<Tx>(options: StatusOptions<IncomingMessage, Tx>): NodeListener {
  const status = createStatus(options)
  return async (request, response) => {
    const target = request.url ?? '/'
    const incoming = new NodeIncoming(request, null, target, noBody)
    sendAnswer(response, await status.answer(target, request, incoming).catch(status.fault))
  }
}
