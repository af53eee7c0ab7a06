import { captureResponse, incomingOf, responseOf } from '../capture-web.ts'
import type { HttpOptions, Protection } from '../protect.ts'
import { createRoute } from '../protect.ts'
import type { RouteDefinition } from '../route.ts'

/** As much of Hono's context as we use: the borrowed framework is never imported. */
export interface HonoContext {
  readonly req: { readonly raw: Request; arrayBuffer(): Promise<ArrayBuffer> }
  res: Response
  readonly error?: Error | undefined
  set(key: 'onceonly', value: unknown): void
}

export type HonoMiddleware = (context: never, next: () => Promise<void>) => Promise<Response | undefined>

export type { Protection }

/** Middleware for Hono: `app.post('/payments', protect({ effect: 'external' }), handler)`; `c.get('onceonly')` is the protection. */
export function idempotent<Tx, C extends HonoContext>(options: HttpOptions<C, Tx>) {
  return (definition: RouteDefinition<C>) => {
    const route = createRoute(options, definition)
    return async (context: C, next: () => Promise<void>): Promise<Response | undefined> => {
      // Hono remembers the bytes, so that the handler can still read them in any form.
      const body = new Uint8Array(await context.req.arrayBuffer())
      const begun = await route.begin(incomingOf(context.req.raw, body), context, context.req.raw.signal)
      switch (begun.kind) {
        case 'unprotected':
          await next()
          return undefined
        case 'answer':
          return responseOf(begun.answer)
        case 'run': {
          context.set('onceonly', begun.protection satisfies Protection<Tx>)
          await next()
          // Hono answers for a handler that threw; what was thrown tells more than the 500.
          if (context.error !== undefined && context.res.status >= 500) await begun.fail(context.error)
          else {
            const capture = { maxBytes: route.maxAnswerBytes, buffered: route.buffered, running: begun }
            context.res = await captureResponse(context.res, capture)
          }
          return undefined
        }
      }
    }
  }
}
