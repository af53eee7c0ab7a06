import { SECOND } from '../core/limits.ts'

/** A circuit breaker: after several failed calls in a row the store is not called for a while. */
export interface Breaker {
  /** True for all callers while calls work; after a failure, for one caller after each pause, which probes for all. */
  allows(): boolean
  worked(): void
  failed(): void
}

/** The store is away, or too busy to answer. Any other error says something about the call itself. */
export function isStoreDown(code: string | null): boolean {
  return code === 'store_unavailable' || code === 'store_busy'
}

/** Fewer may be a coincidence. */
const FAILURES_TO_OPEN = 5
/** Short enough that a recovered store is soon used again, long enough that a probe costs nothing. */
const OPEN_MS = 5 * SECOND

export function createBreaker(now: () => number = () => performance.now()): Breaker {
  let failures = 0
  let openUntil = 0
  return {
    allows() {
      if (failures < FAILURES_TO_OPEN) return true
      if (now() < openUntil) return false
      openUntil = now() + OPEN_MS
      return true
    },
    worked() {
      failures = 0
    },
    failed() {
      failures++
      openUntil = now() + OPEN_MS
    },
  }
}
