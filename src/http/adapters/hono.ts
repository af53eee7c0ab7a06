import type { Context, Env, Input, MiddlewareHandler } from 'hono'
import { isVerdict } from '../../ledger/core/verdict.ts'
import { captureResponse, incomingOf, readableAgain, readBody, responseOf } from '../protocol/capture-web.ts'
import type { DefinitionOf, EffectKind, HandlerContext, KeyRule } from '../protocol/context.ts'
import { answerEarly } from '../protocol/early-node.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import { bodyConsumed, checkHandler } from '../protocol/options.ts'
import type { HttpOptions, Route } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import { checkOptions } from '../protocol/protect-options.ts'
import type { ProtectedRoute, RouteDefinition } from '../protocol/route.ts'
import type { Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'

export type { ProtectedRoute } from '../protocol/route.ts'
export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

export interface HonoOptions<Tx, V extends Env> extends HttpOptions<Context<V>, Tx> {
  /** The largest body that is read, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
}

// oxlint-disable-next-line typescript/no-explicit-any -- Hono's own word for any path.
type AnyPath = any
// oxlint-disable-next-line typescript/no-explicit-any -- validators come with environments of their own.
type Validator<I extends Input> = MiddlewareHandler<any, AnyPath, I, any>

/**
 * The definition, validators of Hono, and the handler. Validators stand here and not before `protect`, because only so
 * TypeScript gives their types to the handler; they run before anything is claimed.
 */
export interface HonoProtect<Tx, V extends Env> {
  <E extends EffectKind, R, K extends KeyRule = 'required', P extends string = AnyPath, I extends Input = NoInput>(
    definition: DefinitionOf<Context<V>, E, K>,
    handler: (c: Context<V, P, I>, context: HandlerContext<Tx, E, K>) => R,
  ): ((c: Context<V, P, I>) => R) & ProtectedRoute<Context<V>>
  <E extends EffectKind, R, I extends Input, K extends KeyRule = 'required', P extends string = AnyPath>(
    definition: DefinitionOf<Context<V>, E, K, JsonOf<I>>,
    validator: Validator<I>,
    handler: (c: Context<V, P, I>, context: HandlerContext<Tx, E, K>) => R,
  ): ((c: Context<V, P, I>) => R) & ProtectedRoute<Context<V>>
  <
    E extends EffectKind,
    R,
    I extends Input,
    J extends Input,
    K extends KeyRule = 'required',
    P extends string = AnyPath,
  >(
    definition: DefinitionOf<Context<V>, E, K, JsonOf<I & J>>,
    validator: Validator<I>,
    second: Validator<J>,
    handler: (c: Context<V, P, I & J>, context: HandlerContext<Tx, E, K>) => R,
  ): ((c: Context<V, P, I & J>) => R) & ProtectedRoute<Context<V>>
}

/** The JSON body that the validators take. */
type JsonOf<I extends Input> = I extends { readonly in: { readonly json: infer B } } ? B : AnyPath

type NoInput = Record<never, never>
type AnyContext = Context<Env, AnyPath>
type Handler = (c: AnyContext, context: unknown) => Response | Promise<Response>

/**
 * Protects handlers of Hono.
 *
 * @example
 * ```ts
 * import { type Context, Hono } from 'hono'
 * import { createLedger } from 'onceonly'
 * import { createProtect } from 'onceonly/hono'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * type Session = { Variables: { user: { id: string; orgId: string } } }
 * const once = createLedger({ store: sqliteStore('orders.db') })
 * const protect = createProtect({
 *   ledger: once,
 *   who: (c: Context<Session>) => ({ tenant: c.get('user').orgId, caller: c.get('user').id }),
 * })
 *
 * const app = new Hono<Session>()
 * app.post(
 *   '/orders',
 *   protect({ name: 'order.place', effect: 'transaction' }, async (c, { tx }) => {
 *     await tx.query('insert into orders (item) values (?)', [await c.req.text()])
 *     return c.json({ placed: true }, 201)
 *   }),
 * )
 * ```
 */
// oxlint-disable-next-line typescript/no-explicit-any -- Hono's own default.
export function createProtect<Tx, V extends Env = any>(options: HonoOptions<Tx, V>): HonoProtect<Tx, V> {
  checkOptions(options, ['maxBodyBytes'])
  const { maxBodyBytes = MAX_BODY_BYTES } = options

  function protect(definition: RouteDefinition<Context<V>>, ...given: readonly unknown[]) {
    const route = createRoute(options, definition)
    const handler = given.at(-1) as Handler
    checkHandler(definition, handler)
    const validators = given.slice(0, -1) as readonly Validator<Input>[]

    return Object.assign(
      async (c: AnyContext): Promise<Response> => {
        for (const validate of validators) {
          const refusal = await validate(c, async () => {})
          if (refusal instanceof Response) return refusal
        }
        const incoming = incomingOf(c.req.raw, async () => ({ bytes: await bytesOf(c, maxBodyBytes) }))
        const beginning = route.begin(incoming, c as unknown as Context<V>, c.req.raw.signal)
        const begun = beginning instanceof Promise ? await beginning : beginning
        switch (begun.kind) {
          case 'unprotected':
            return handler(c, null)
          case 'answer':
            return responseOf(begun.answer)
          case 'run':
            return answered(route, c, begun, handler)
        }
      },
      { definition },
    )
  }
  return protect as unknown as HonoProtect<Tx, V>
}

async function answered<N, Tx>(
  route: Route<N, Tx>,
  c: AnyContext,
  running: Running<Tx>,
  handler: Handler,
): Promise<Response> {
  // A handler cannot respond and continue: only the response of Node's server can be answered early.
  answerEarly((c.env as { readonly outgoing?: unknown } | undefined)?.outgoing, running.early)
  const { method, signal } = c.req.raw
  const capture = { method, signal, maxBytes: route.maxAnswerBytes, buffered: route.buffered, running }
  let response: Response
  try {
    response = await running.inside(() => handler(c, running.context))
  } catch (thrown) {
    const own = responseFor(route, thrown)
    if (own !== null) return captureResponse(own, { ...capture, thrown })
    const recorder = recorders.get(c)
    if (recorder === undefined) await running.fail(thrown)
    else recorder.failed = (made) => captureResponse(made, { ...capture, thrown })
    throw thrown
  }
  return captureResponse(response, capture)
}

/** What Hono itself would answer: an `HTTPException` carries its response, and a verdict is no `Error` that Hono takes. */
function responseFor<N, Tx>(route: Route<N, Tx>, thrown: unknown): Response | null {
  if (isVerdict(thrown)) return responseFor(route, thrown.error) ?? responseOf(route.fault(thrown.error))
  const { getResponse } = (thrown ?? {}) as { getResponse?: () => Response }
  return typeof getResponse === 'function' ? getResponse.call(thrown) : null
}

interface Recorder {
  /** Set when a protected handler threw an error that the application answers. */
  failed: ((made: Response) => Promise<Response>) | null
}

const recorders = new WeakMap<object, Recorder>()

/**
 * `app.use(recordErrors)`, for applications with an `app.onError` of their own: its response to an error of a protected
 * handler is recorded, so that a retry gets it again. Without it only the error itself decides what is recorded.
 */
export const recordErrors: MiddlewareHandler = async (c, next) => {
  const recorder: Recorder = { failed: null }
  recorders.set(c, recorder)
  await next()
  if (recorder.failed === null) return
  const recorded = await recorder.failed(c.res)
  // Hono would carry headers over from the response that is replaced.
  c.res = undefined
  c.res = recorded
}

async function bytesOf({ req }: AnyContext, maxBytes: number): Promise<Uint8Array> {
  if (req.raw.bodyUsed) {
    // A validator has read it, and Hono keeps what it read.
    try {
      return new Uint8Array(await req.arrayBuffer())
    } catch {
      const target = new URL(req.url).pathname
      throw bodyConsumed({ method: req.method, target }, 'read it with c.req.json() or another method of c.req')
    }
  }
  const bytes = await readBody(req.raw, maxBytes)
  req.raw = readableAgain(req.raw, bytes)
  return bytes
}

/** `GET /operations/{id}` as a handler of Hono. */
// oxlint-disable-next-line typescript/no-explicit-any -- Hono's own default.
export function operationStatus<Tx, V extends Env = any>(options: StatusOptions<Context<V>, Tx>) {
  const status = createStatus(options)
  return async (c: Context<V>): Promise<Response> => {
    const { pathname } = new URL(c.req.raw.url)
    return responseOf(await status.answer(pathname, c, incomingOf(c.req.raw, noBody)))
  }
}
