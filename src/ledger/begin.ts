import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context } from './context.ts'
import { released } from './core/verdict.ts'
import type { Declared } from './declared.ts'
import type { EffectContext } from './effect-context.ts'
import type { Asked, CallOptions } from './execute.ts'
import { execute } from './execute.ts'
import type { Execution } from './present.ts'

/** Phase one of a command: either its effect may begin, or there is an answer without it. */
export type Begun<C> = Granted<C> | { readonly kind: 'answered'; readonly execution: Execution<unknown> }

/** How an effect ended: with a value, or with what it threw. */
export type Ended = { readonly value: unknown } | { readonly thrown: unknown }

/** Phase two: the caller runs the effect, and settles. The lease is renewed, or the transaction held, until then. */
export interface Granted<C> {
  readonly kind: 'granted'
  readonly context: C
  /** Runs the work where operations on the same store join the transaction of this command. */
  inside<T>(work: () => T): T
  /**
   * Records how the effect ended, once; what is said later changes nothing. What was thrown means what it means for `run`.
   * Rejects where a transaction did not commit: a handed-over effect is never run again.
   */
  settle(ended: Ended): Promise<Execution<unknown>>
  /** Gives the claim back, because the effect never began. */
  abandon(reason: unknown): Promise<void>
}

const atOnce = <T>(work: () => T): T => work()

/** Claims a command whose effect runs in the caller's hands. A caller that leaves before the grant gives it back. */
export function begin(
  context: Context,
  op: Declared,
  asked: Asked,
  options: CallOptions,
): Promise<Begun<EffectContext>> {
  const { promise, resolve, reject } = Promise.withResolvers<Begun<EffectContext>>()
  let left = false
  const execution = execute(context, op, asked, options, {
    handedOver: true,
    effect(given: EffectContext) {
      // Twins may have kept the claim alive: they decide anew, because this caller's effect will not run.
      if (left || options.signal?.aborted === true)
        throw released(new Error('The caller left before the effect began.'))
      const ended = Promise.withResolvers<unknown>()
      // A transaction and a span are found through the asynchronous context; a snapshot of it takes microseconds.
      const inside = op.effect === 'transaction' || context.around !== null ? AsyncLocalStorage.snapshot() : atOnce
      const settle = (how: Ended) => {
        if ('value' in how) ended.resolve(how.value)
        else ended.reject(how.thrown)
        return execution
      }
      const abandon = (reason: unknown) => settle({ thrown: released(reason) }).then(ignore, ignore)
      resolve({ kind: 'granted', context: given, inside, settle, abandon })
      return ended.promise
    },
  })
  execution.then(
    (answer) => resolve({ kind: 'answered', execution: answer }),
    (error: unknown) => {
      left = true
      reject(error)
    },
  )
  return promise
}

function ignore(): void {}
