import type { Awaitable, Runtime } from '../runtime/runtime.ts'
import { sleep } from '../runtime/runtime.ts'
import { isThenable } from '../runtime/thenable.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { DecisionOf, Request } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import { inDoubt } from './doubt.ts'
import type { AppliedDecision, Claims } from './store/port.ts'

/** Sends requests to the store, and repeats those that are safe to repeat until their deadline. */
export interface Requests {
  /** A promise only where the store has to be waited for. Never throws: what fails at once is repeated, too. */
  apply<R extends Request>(request: R, timeoutMs?: number): Awaitable<AppliedDecision<DecisionOf<R>>>
  /** Resolves when nothing is under way. */
  drain(): Promise<void>
}

/** A request that failed at least once. */
interface Failed {
  readonly request: Request
  /** By the runtime's monotonic clock. */
  readonly deadline: number
  tries: number
  /** An earlier try may have taken effect. */
  indeterminate: boolean
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** Tries of a request that the store refused for certain: a store that is down is reported soon, not after a minute. */
const TRIES_WHEN_NOT_APPLIED = 4
const CALL = { timeoutMs: limits.storeCallMs }

export function createRequests(claims: Claims, runtime: Runtime): Requests {
  const idle: (() => void)[] = []
  let underWay = 0

  function wake(): void {
    for (const each of idle.splice(0)) each()
  }

  function answered<T>(applied: T): T {
    underWay--
    if (underWay === 0 && idle.length > 0) wake()
    return applied
  }

  async function repeat<R extends Request>(request: R, deadline: number, error: unknown) {
    const failed: Failed = { request, deadline, tries: 0, indeterminate: false }
    try {
      for (let fault = asStoreError(error); ; ) {
        await pause(failed, fault)
        try {
          return await claims.apply(request, { timeoutMs: deadline - runtime.monotonicMs() })
        } catch (again) {
          fault = asStoreError(again)
        }
      }
    } finally {
      answered(null)
    }
  }

  /** Throws when the request must not be repeated, or not in time. */
  async function pause(failed: Failed, fault: OnceError): Promise<void> {
    failed.tries++
    if (fault.applied === 'maybe') failed.indeterminate = true
    const pauseMs = backoffMs(failed.tries, RETRY, runtime.random())
    if (runtime.monotonicMs() + pauseMs >= failed.deadline || !mayRepeat(failed, fault)) {
      throw failed.indeterminate ? inDoubt(fault) : fault
    }
    await sleep(runtime, pauseMs)
  }

  return {
    apply: <R extends Request>(request: R, timeoutMs: number = limits.storeCallMs) => {
      const deadline = runtime.monotonicMs() + timeoutMs
      const call = timeoutMs === limits.storeCallMs ? CALL : { timeoutMs }
      try {
        const applied = claims.apply(request, call)
        if (!isThenable(applied)) return applied
        underWay++
        return Promise.resolve(applied).then(answered<AppliedDecision<DecisionOf<R>>>, (error: unknown) =>
          repeat(request, deadline, error),
        )
      } catch (error) {
        underWay++
        return repeat(request, deadline, error)
      }
    },
    drain: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve))),
  }
}

/**
 * Most requests carry a claim id and may be repeated whatever happened; a person's actions may not. A busy store has
 * repeated the request itself, or has no room for it.
 */
function mayRepeat({ request: { kind }, tries }: Failed, fault: OnceError): boolean {
  if (!fault.retryable || fault.code === 'stopped' || fault.code === 'store_busy') return false
  if (fault.applied === 'no') return tries < TRIES_WHEN_NOT_APPLIED
  return kind !== 'resolve' && kind !== 'forget'
}

function asStoreError(error: unknown): OnceError {
  if (isOnceError(error)) return error
  return new OnceError('store_unavailable', 'The store failed in an unforeseen way.', {
    cause: error,
    applied: 'maybe',
  })
}
