import {
  captureResponse,
  incomingOf,
  readBody,
  responseOf as responseOfAnswer,
} from '../../http/protocol/capture-web.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../../http/protocol/context.ts'
import { MAX_BODY_BYTES, noBody } from '../../http/protocol/exchange.ts'
import { checkHandler } from '../../http/protocol/options.ts'
import type { HttpOptions, Route } from '../../http/protocol/protect.ts'
import { createRoute } from '../../http/protocol/protect.ts'
import { checkOptions } from '../../http/protocol/protect-options.ts'
import type { ProtectedRoute } from '../../http/protocol/route.ts'
import type { Running } from '../../http/protocol/running.ts'
import type { StatusOptions } from '../../http/protocol/status.ts'
import { createStatus } from '../../http/protocol/status.ts'
import type { Deadline } from './deadline.ts'
import { checkedReserveMs, startDeadline, untilDeadline } from './deadline.ts'
import type { HttpEvent, HttpResult, HttpReturn, LambdaContext } from './events.ts'
import { requestOf, responseOf, resultOf } from './http-event.ts'

export interface LambdaOptions<Ev, Tx> extends HttpOptions<Ev, Tx> {
  /** How long before the end of its invocation a function is answered for, in milliseconds. @default 500 */
  readonly reserveMs?: number
  /** The largest body that is accepted, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

/** As Lambda calls it. */
export type LambdaHttpFunction<Ev> = (event: Ev, context: LambdaContext) => Promise<HttpResult>

/** Takes the definition and the function of one route, and returns what Lambda takes as its handler. */
export interface LambdaProtect<Ev extends HttpEvent, Tx> {
  <E extends EffectKind, K extends KeyRule = 'required'>(
    definition: DefinitionOf<Ev, E, K>,
    handler: (event: Ev, context: LambdaContext, once: HandlerContext<Tx, E, K>) => HttpReturn | Promise<HttpReturn>,
  ): LambdaHttpFunction<Ev> & ProtectedRoute<Ev>
}

/**
 * Protects functions of AWS Lambda behind API Gateway (REST and HTTP APIs) or a function URL.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createProtect } from 'onceonly/lambda'
 * import { postgresStore } from 'onceonly/postgres'
 * import pg from 'pg'
 *
 * const once = createLedger({ store: postgresStore(new pg.Pool({ max: 1 })), background: false })
 * const protect = createProtect({
 *   ledger: once,
 *   who: (event) => ({ tenant: 'acme', caller: event.headers?.['from'] ?? 'anonymous' }),
 * })
 *
 * export const handler = protect({ name: 'order.place', effect: 'transaction' }, async (event, _context, { tx }) => {
 *   const { item } = JSON.parse(event.body ?? '{}')
 *   await tx.query('insert into orders (item) values (?)', [item])
 *   return { statusCode: 201, body: JSON.stringify({ item }) }
 * })
 * ```
 */
export function createProtect<Tx, Ev extends HttpEvent = HttpEvent>(
  options: LambdaOptions<Ev, Tx>,
): LambdaProtect<Ev, Tx> {
  checkOptions(options, ['reserveMs', 'maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options
  const reserveMs = checkedReserveMs('createProtect', options.reserveMs)

  return (definition, handler) => {
    const route = createRoute(options, definition)
    checkHandler(definition, handler)
    const handle = handler as unknown as Handler<Ev, Tx>

    async function protect(event: Ev, context: LambdaContext, deadline: Deadline): Promise<Response> {
      const request = requestOf(event, deadline.signal)
      const incoming = incomingOf(request, async () => ({ bytes: await readBody(request, maxBodyBytes) }))
      const begun = await route.begin(incoming, event, deadline.signal)
      switch (begun.kind) {
        case 'unprotected':
          return responseOf(await handle(event, context, null))
        case 'answer':
          return responseOfAnswer(begun.answer)
        case 'run': {
          const once = untilDeadline(begun.context, deadline) as HandlerContext<Tx, EffectKind, 'optional'>
          return answered(route, begun, request.method, deadline, async () => handle(event, context, once))
        }
      }
    }

    async function run(event: Ev, context: LambdaContext): Promise<HttpResult> {
      const deadline = startDeadline(context, reserveMs)
      try {
        return await resultOf(event, await protect(event, context, deadline))
      } catch (error) {
        // No framework answers for it, and API Gateway would say 502 for a function that failed.
        return await resultOf(event, responseOfAnswer(route.fault(error)))
      } finally {
        deadline.stop()
      }
    }
    return Object.assign(run, { definition }) as never
  }
}

type Handler<Ev, Tx> = (
  event: Ev,
  context: LambdaContext,
  once: HandlerContext<Tx, EffectKind, 'optional'>,
) => HttpReturn | Promise<HttpReturn>

async function answered<Ev, Tx>(
  route: Route<Ev, Tx>,
  running: Running<Tx>,
  method: string,
  deadline: Deadline,
  handler: () => Promise<HttpReturn>,
): Promise<Response> {
  const { maxAnswerBytes: maxBytes, buffered } = route
  // A caller that hung up is not visible here, and the end of the invocation is handled below.
  const capture = { method, signal: new AbortController().signal, maxBytes, buffered, running }
  const late = deadline.over.then((): never => {
    throw deadline.signal.reason
  })
  late.catch(() => {})
  let response: Response
  try {
    response = responseOf(await Promise.race([running.inside(handler), late]))
  } catch (thrown) {
    return captureResponse(responseOfAnswer(route.fault(thrown)), { ...capture, thrown })
  }
  return captureResponse(response, capture)
}

/** `GET /operations/{id}` as a function of Lambda. */
export function operationStatus<Tx, Ev extends HttpEvent = HttpEvent>(
  options: StatusOptions<Ev, Tx>,
): LambdaHttpFunction<Ev> {
  const status = createStatus(options)
  return async (event) => {
    const request = requestOf(event, new AbortController().signal)
    const { pathname } = new URL(request.url)
    const answer = await status.answer(pathname, event, incomingOf(request, noBody)).catch(status.fault)
    return await resultOf(event, responseOfAnswer(answer))
  }
}
