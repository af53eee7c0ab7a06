import { isVerdict } from '../../ledger/core/verdict.ts'
import { captureResponse, incomingOf, readableAgain, readBody, responseOf } from '../protocol/capture-web.ts'
import { answerEarly } from '../protocol/early-node.ts'
import { MAX_BODY_BYTES, noBody } from '../protocol/exchange.ts'
import type { HttpOptions } from '../protocol/protect.ts'
import { createRoute } from '../protocol/protect.ts'
import type { RouteDefinition } from '../protocol/route.ts'
import type { RouteContext, Running } from '../protocol/running.ts'
import type { StatusOptions } from '../protocol/status.ts'
import { createStatus } from '../protocol/status.ts'

export type { LeasedRouteContext, RouteContext, TransactionRouteContext } from '../protocol/running.ts'

/** As much of Hono's context as we use: the borrowed framework is never imported. */
export interface HonoContext {
  readonly req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> }
  res: Response
  /** What the server behind Hono gives along; on Node its response is among it. */
  readonly env?: unknown
  readonly error: Error | undefined
  set(key: 'onceonly', value: unknown): void
}

export interface HonoOptions<C, Tx> extends HttpOptions<C, Tx> {
  readonly maxBodyBytes?: number
}

type Next = () => Promise<void>

/**
 * Middleware for Hono: `app.post('/payments', protect({ effect: 'external' }), handler)`; `c.get('onceonly')` is the
 * context of the effect.
 */
export function idempotent<Tx, C extends HonoContext>(options: HonoOptions<C, Tx>) {
  const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES

  return (definition: RouteDefinition<C>) => {
    const route = createRoute(options, definition)

    async function answered(context: C, running: Running<Tx>, next: Next): Promise<undefined> {
      context.set('onceonly', running.context satisfies RouteContext<Tx>)
      // A middleware cannot answer and continue with the same context: only the response of Node's server can.
      answerEarly((context.env as { readonly outgoing?: unknown } | undefined)?.outgoing, running.early)
      let thrown: unknown
      try {
        await running.inside(next)
        thrown = context.error
      } catch (error) {
        // Hono answers for errors. Anything else that is thrown leaves it without an answer; a verdict is our own word.
        if (!isVerdict(error)) {
          await running.fail(error)
          throw error
        }
        thrown = error
        context.res = responseOf(route.fault(error.error))
      }
      const { method, signal } = context.req.raw
      const { maxAnswerBytes: maxBytes, buffered } = route
      const answer = await captureResponse(context.res, { method, signal, maxBytes, buffered, running, thrown })
      // Hono would carry headers over from the answer that is replaced.
      context.res = undefined as never
      context.res = answer
    }

    async function protect(context: C, next: Next): Promise<Response | undefined> {
      const incoming = incomingOf(context.req.raw, async () => ({ bytes: await bytesOf(context, maxBodyBytes) }))
      const begun = await route.begin(incoming, context, context.req.raw.signal)
      switch (begun.kind) {
        case 'unprotected':
          await next()
          return undefined
        case 'answer':
          return responseOf(begun.answer)
        case 'run':
          return answered(context, begun, next)
      }
    }
    return Object.assign(protect, { definition })
  }
}

async function bytesOf({ req }: HonoContext, maxBytes: number): Promise<Uint8Array> {
  // A validator that came before us has read it, and Hono remembers what it read.
  if (req.raw.bodyUsed) return new Uint8Array(await req.arrayBuffer())
  const bytes = await readBody(req.raw, maxBytes)
  req.raw = readableAgain(req.raw, bytes)
  return bytes
}

/** `GET /operations/{id}` as a handler of Hono. */
export function operationStatus<Tx, C extends HonoContext>(options: StatusOptions<C, Tx>) {
  const status = createStatus(options)
  return async (context: C): Promise<Response> => {
    const { pathname } = new URL(context.req.raw.url)
    return responseOf(await status.answer(pathname, context, incomingOf(context.req.raw, noBody)))
  }
}
