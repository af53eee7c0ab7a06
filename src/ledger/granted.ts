import { AsyncLocalStorage } from 'node:async_hooks'
import type { Awaitable } from '../runtime/runtime.ts'
import type { CommandName } from './context.ts'
import type { Pointer } from './core/record.ts'
import type { Result } from './outcome.ts'
import type { Execution } from './present.ts'

/** Phase one of a command: either its effect may begin, or there is an answer without it. */
export type Begun<C> = Granted<C> | Answered

export interface Answered {
  readonly kind: 'answered'
  readonly execution: Execution<unknown>
}

/** How an effect ended: with a value, or with what it threw. */
export type Ended = Result | { readonly thrown: unknown }

/** Phase two: the caller runs the effect, and settles. The lease is renewed, or the transaction held, until then. */
export interface Granted<C> {
  readonly kind: 'granted'
  readonly context: C
  readonly command: CommandName
  /** Turns a reservation into a running attempt: durable before the effect begins. Harmless on one that runs. */
  start(): Promise<void>
  /** Runs the work where operations on the same store join the transaction of this command. */
  inside<T>(work: () => T): T
  /**
   * Records how the effect ended, once; what is said later changes nothing. What was thrown means what it means for `run`.
   * Rejects where a transaction did not commit: a handed-over effect is never run again. A promise only where the store
   * has to be waited for.
   */
  settle(ended: Ended): Awaitable<Execution<unknown>>
  /** Gives the claim back, because the effect never began. */
  abandon(reason: unknown): Promise<void>
}

/** How an effect ended, in words: what a lease is settled with, and what a person resolves an unknown with. */
export type Ending =
  | { readonly kind: 'succeeded'; readonly value: unknown; readonly pointer: Pointer | null }
  | { readonly kind: 'failed'; readonly error: unknown }

export type SettleWord =
  | Ending
  | { readonly kind: 'not_done'; readonly error: unknown; readonly retryAfterMs?: number }
  | { readonly kind: 'unknown'; readonly error: unknown }

/** An outcome: the effect happened, with this result and, where it has one, the pointer to it. */
export const succeeded = (value?: unknown, pointer: Pointer | null = null): Ending => ({
  kind: 'succeeded',
  value,
  pointer,
})
/** An outcome: the command was validly refused. Retries get the same failure. */
export const failed = (error: unknown): Ending => ({ kind: 'failed', error })

/** An effect in its caller's hands, where code around it waits for a promise: a transaction, or a span. */
export function createPendingEffect() {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  // Code around it that fails before it waits leaves a rejection that has no other reader.
  promise.catch(() => {})
  let inside: <T>(work: () => T) => T = (work) => work()
  return {
    /** Called where the effect would be. The transaction and the span are found through the asynchronous context. */
    enter(): Promise<unknown> {
      inside = AsyncLocalStorage.snapshot()
      return promise
    },
    inside: <T>(work: () => T): T => inside(work),
    end(how: Ended): void {
      if ('value' in how) resolve(how.value)
      else reject(how.thrown)
    },
  }
}
