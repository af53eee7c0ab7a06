import type { IncomingMessage, ServerResponse } from 'node:http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { isVerdict } from '../../ledger/core/verdict.ts'
import { NodeIncoming, sendAnswer } from '../protocol/capture-node.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import { handleOnNode } from '../protocol/handle-node.ts'
import { checkHandler } from '../protocol/options.ts'
import type { HttpOptions } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute } from '../protocol/route.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'
import type { Tap } from '../protocol/tap-node.ts'
import type { Awaitable } from '../protocol/thenable.ts'
import type { ReadRequest } from './express-body.ts'
import { bodyOf } from './express-body.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

export interface ExpressOptions<Tx> extends HttpOptions<Request, Tx> {
  /** The largest body that is read where no parser has read it, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

/** For `express.json({ verify: keepRawBody })`: the fingerprint needs the bytes as they came. */
export function keepRawBody(request: IncomingMessage, _response: unknown, bytes: Uint8Array): void {
  ;(request as ReadRequest).rawBody = bytes
}

/** Takes the definition and the handler of one route, and returns what Express takes as its handler. */
export interface ExpressProtect<Tx> {
  <
    E extends EffectKind,
    K extends KeyRule = 'required',
    Params = Request['params'],
    // oxlint-disable-next-line typescript/no-explicit-any -- Express' own default.
    ResBody = any,
    // oxlint-disable-next-line typescript/no-explicit-any -- Express' own default.
    ReqBody = any,
    Query = Request['query'],
    // oxlint-disable-next-line typescript/no-explicit-any -- Express' own default.
    Locals extends Record<string, any> = Record<string, any>,
  >(
    definition: DefinitionOf<Request, E, K, ReqBody>,
    handler: (
      request: Request<Params, ResBody, ReqBody, Query, Locals>,
      response: Response<ResBody, Locals>,
      context: HandlerContext<Tx, E, K>,
    ) => unknown,
  ): RequestHandler<Params, ResBody, ReqBody, Query, Locals> & ProtectedRoute<Request>
}

/**
 * Protects handlers of Express 5 and 4.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { createLedger } from 'onceonly'
 * import { createProtect, keepRawBody } from 'onceonly/express'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({
 *   ledger: once,
 *   who: (request) => ({ tenant: 'acme', caller: request.get('x-user') ?? 'anonymous' }),
 * })
 *
 * const app = express()
 * app.use(express.json({ verify: keepRawBody }))
 * app.post(
 *   '/orders',
 *   protect({ name: 'order.place', effect: 'transaction' }, async (request, response, { tx }) => {
 *     await tx.query('insert into orders (item) values (?)', [request.body.item])
 *     response.status(201).json({ item: request.body.item })
 *   }),
 * )
 * ```
 */
export function createProtect<Tx>(options: ExpressOptions<Tx>): ExpressProtect<Tx> {
  checkOptions(options, ['maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const handle = handler as unknown as Handler<Tx>

    function protect(request: Request, response: Response): Awaitable<void> {
      // A mounted router has cut its own prefix from `url`; the resource is the whole path.
      const incoming = new NodeIncoming(request, response, request.originalUrl, () => bodyOf(request, maxBodyBytes))
      const threw = (error: unknown, tap: Tap) => {
        // What was thrown says more than the response that an error handler makes of it.
        tap.threw(error)
        throw isVerdict(error) ? error.error : error
      }
      const handler = { route, handle: (context: Context<Tx>) => handle(request, response, context), threw }
      return handleOnNode(handler, incoming, request, response)
    }

    const middleware: RequestHandler = (request, response, next) => {
      // Express takes nothing for success.
      const failed = (error: unknown) => next(error ?? new Error('The handler rejected with nothing.'))
      let over: Awaitable<void>
      try {
        over = protect(request, response)
      } catch (error) {
        return failed(error)
      }
      if (over instanceof Promise) void over.catch(failed)
    }
    return Object.assign(middleware, { definition }) as never
  }
}

type Context<Tx> = HandlerContext<Tx, EffectKind, 'optional'>
type Handler<Tx> = (request: Request, response: Response, context: Context<Tx>) => unknown

/** `GET /operations/{id}` as a handler of Express. */
export function operationStatus<Tx>(options: StatusOptions<Request, Tx>): RequestHandler {
  const status = createStatus(options)
  async function answer(request: Request, response: ServerResponse, next: NextFunction): Promise<void> {
    const { originalUrl: target } = request
    try {
      const incoming = new NodeIncoming(request, null, target, noBody)
      sendAnswer(response, await status.answer(target, request, incoming))
    } catch (error) {
      next(error)
    }
  }
  return (request, response, next) => void answer(request, response, next)
}
