import { SECOND } from '../core/limits.ts'

/** Says whether a store is worth asking: not for a while after several calls in a row have failed. */
export interface Breaker {
  /** True for all callers while calls work; after a failure, for one caller after each pause, which probes for all. */
  allows(): boolean
  worked(): void
  failed(): void
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
