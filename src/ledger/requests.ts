import type { Runtime } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { DecisionOf, Request } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import { inDoubt } from './doubt.ts'
import { createOverdueWatch } from './store/overdue.ts'
import type { AppliedDecision, Claims } from './store/port.ts'

/** Sends requests to the store, and repeats those that are safe to repeat until their deadline. */
export interface Requests {
  apply<R extends Request>(request: R, timeoutMs?: number): Promise<AppliedDecision<DecisionOf<R>>>
  /** Resolves when nothing is under way. */
  drain(): Promise<void>
}

interface Sent {
  readonly request: Request
  readonly timeoutMs: number
  /** By the runtime's monotonic clock. */
  readonly deadline: number
  tries: number
  /** An earlier try may have taken effect. */
  indeterminate: boolean
  /** The caller has its answer. */
  over: boolean
  resolve(applied: AppliedDecision): void
  reject(error: OnceError): void
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** Tries of a request that the store refused for certain: a store that is down is reported soon, not after a minute. */
const TRIES_WHEN_NOT_APPLIED = 4
/** A store ends its calls in time by itself, and knows better whether they were sent; only one that hangs does not. */
const HANG_GRACE_MS = 500

export function createRequests(claims: Claims, runtime: Runtime): Requests {
  const underWay = new Set<Sent>()
  const idle: (() => void)[] = []
  const watch = createOverdueWatch(runtime, () => underWay.size > 0, endOverdue)

  /** For a store that hangs: its callers have an answer all the same. What was sent may still take effect. */
  function endOverdue(now: number): void {
    for (const sent of underWay) {
      if (sent.over || sent.deadline + HANG_GRACE_MS > now) continue
      const text = `The store did not answer within ${Math.round(sent.timeoutMs)} ms.`
      reject(sent, new OnceError('store_unavailable', text, { applied: 'maybe' }))
    }
  }

  function reject(sent: Sent, fault: OnceError): void {
    sent.over = true
    sent.reject(sent.indeterminate ? inDoubt(fault) : fault)
  }

  function end(sent: Sent): void {
    underWay.delete(sent)
    if (underWay.size === 0) for (const wake of idle.splice(0)) wake()
  }

  function send(sent: Sent): void {
    const timeoutMs = sent.tries === 0 ? sent.timeoutMs : sent.deadline - runtime.monotonicMs()
    claims.apply(sent.request, { timeoutMs }).then(
      (applied) => {
        sent.over = true
        sent.resolve(applied)
        end(sent)
      },
      (error: unknown) => failed(sent, asStoreError(error)),
    )
  }

  function failed(sent: Sent, fault: OnceError): void {
    if (sent.over) {
      end(sent)
      return
    }
    sent.tries++
    if (fault.applied === 'maybe') sent.indeterminate = true
    const pauseMs = backoffMs(sent.tries, RETRY, runtime.random())
    if (runtime.monotonicMs() + pauseMs >= sent.deadline || !mayRepeat(sent, fault)) {
      reject(sent, fault)
      end(sent)
      return
    }
    runtime.setTimer(
      pauseMs,
      () => {
        if (sent.over) end(sent)
        else send(sent)
      },
      false,
    )
  }

  return {
    apply: <R extends Request>(request: R, timeoutMs: number = limits.storeCallMs) =>
      new Promise<AppliedDecision<DecisionOf<R>>>((resolve, refuse) => {
        const sent: Sent = {
          request,
          timeoutMs,
          deadline: runtime.monotonicMs() + timeoutMs,
          tries: 0,
          indeterminate: false,
          over: false,
          resolve: resolve as (applied: AppliedDecision) => void,
          reject: refuse,
        }
        underWay.add(sent)
        send(sent)
        watch(timeoutMs)
      }),
    drain: () => (underWay.size === 0 ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve))),
  }
}

/**
 * Most requests carry a claim id and may be repeated whatever happened; a person's actions may not. A busy store has
 * repeated the request itself, or has no room for it.
 */
function mayRepeat({ request: { kind }, tries }: Sent, fault: OnceError): boolean {
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
