import type { Runtime } from './runtime.ts'

/**
 * What the two clocks may differ by before it counts: more than the rounding of one and the steering of the other, and
 * much less than the grace that a store gives to a lease.
 */
const NOTICED_MS = 100

/** Uptime may count in whole seconds: only more than that says something. */
const UPTIME_GRAIN_MS = 1_100

/**
 * The time by which the holder of a lease knows when it is over. A monotonic clock stands still while the machine is
 * suspended, and the store's does not. A jump of the wall clock, which is cheap to read, shows that something happened; the
 * uptime decides whether the machine slept or the clock was set. Without an uptime, a wall clock that jumps forward counts
 * as sleep, which ends leases early and never late.
 */
export function createLeaseClock(runtime: Runtime): () => number {
  let since = runtime.monotonicMs()
  let wallSince = runtime.wallMs?.() ?? since
  const [begunAt, upAtBeginning] = [since, runtime.upMs?.() ?? null]
  let missedMs = 0

  /** All that the machine slept since the beginning; null where it is unknown. */
  function sleptMs(now: number): number | null {
    if (runtime.upMs === undefined || upAtBeginning === null) return null
    const slept = runtime.upMs() - upAtBeginning - (now - begunAt)
    return slept > UPTIME_GRAIN_MS ? slept : 0
  }

  return () => {
    const now = runtime.monotonicMs()
    const wall = runtime.wallMs?.() ?? now
    const aheadMs = wall - wallSince - (now - since)
    if (Math.abs(aheadMs) > NOTICED_MS) {
      missedMs = Math.max(missedMs, sleptMs(now) ?? missedMs + aheadMs)
      since = now
      wallSince = wall
    }
    return now + missedMs
  }
}
