import { OnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import { kindOf, wholeOption } from '../../ledger/core/option-names.ts'
import type { LambdaContext } from './events.ts'

/** Before Lambda ends a function, it needs time to give its claims back and to answer. */
const RESERVE_MS = SECOND / 2

export function checkedReserveMs(whose: string, reserveMs: number = RESERVE_MS): number {
  return wholeOption(whose, 'reserveMs', reserveMs, 1, 60 * SECOND)
}

/** The end of one invocation, a little before Lambda's own. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Settles when the time is over; never rejects. */
  readonly over: Promise<void>
  stop(): void
}

class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

export function startDeadline(context: LambdaContext, reserveMs: number): Deadline {
  checkContext(context)
  const controller = new AbortController()
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const end = () => {
    controller.abort(new DeadlineError(`Lambda ends this invocation in ${reserveMs} ms.`))
    resolve()
  }
  const leftMs = context.getRemainingTimeInMillis() - reserveMs
  const timer = leftMs > 0 ? setTimeout(end, leftMs) : null
  if (timer === null) end()
  return {
    signal: controller.signal,
    over,
    stop: () => {
      if (timer !== null) clearTimeout(timer)
    },
  }
}

function checkContext(context: Partial<LambdaContext> | undefined): void {
  if (typeof context?.getRemainingTimeInMillis === 'function') return
  throw new OnceError(
    'bad_option',
    `A function of Lambda needs Lambda's context, not ${kindOf(context)}: in a test pass { getRemainingTimeInMillis: () => 10_000 }.`,
  )
}

/** The context of an effect, whose signal also fires when the invocation ends. */
export function untilDeadline<C extends { readonly signal: AbortSignal; readonly pointer: unknown }>(
  context: C,
  { signal }: Deadline,
): C {
  const copy = { ...context, signal: AbortSignal.any([context.signal, signal]) }
  // It changes with `attach`.
  return Object.defineProperty(copy, 'pointer', { get: () => context.pointer, enumerable: true, configurable: true })
}
