import { OnceError } from '../core/errors.ts'
import { SECOND } from '../core/limits.ts'

/** Bounds a call in time, and does not ask at all for a while after several calls in a row have failed. */
export interface Breaker {
  /** `late` gets an answer that came after the deadline; `extraMs` is time that the call is meant to wait. */
  call<T>(work: () => Promise<T>, late: (value: T) => void, extraMs: number): Promise<T>
}

const FAILURES_TO_OPEN = 5
const OPEN_MS = 5 * SECOND

export function createBreaker(deadlineMs: number | null): Breaker {
  let failures = 0
  let openUntil = 0

  async function bounded<T>(work: () => Promise<T>, ms: number, late: (value: T) => void): Promise<T> {
    let over = false
    const answer = work()
    const timeout = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      over = true
      timeout.reject(new OnceError('store_unavailable', `No answer within ${ms} ms.`, { applied: 'maybe' }))
    }, ms)
    answer.then(
      (value) => (over ? late(value) : undefined),
      () => undefined,
    )
    try {
      return await Promise.race([answer, timeout.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async call(work, late, extraMs) {
      if (deadlineMs === null) return work()
      if (performance.now() < openUntil)
        throw new OnceError('store_unavailable', 'The breaker is open.', { applied: 'no' })
      try {
        const value = await bounded(work, deadlineMs + extraMs, late)
        failures = 0
        return value
      } catch (error) {
        if (++failures >= FAILURES_TO_OPEN) {
          openUntil = performance.now() + OPEN_MS
          failures = 0
        }
        throw error
      }
    },
  }
}
