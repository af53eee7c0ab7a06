import type { Runtime } from './runtime.ts'

/**
 * What the two clocks may differ by before it counts: more than the rounding of one and the steering of the other, and
 * much less than the grace that a store gives to a lease.
 */
const NOTICED_MS = 100

/**
 * The time by which the holder of a lease knows when it is over. A monotonic clock stands still while the machine is
 * suspended, and the store's does not; so the larger distance of it and the wall clock counts. A wall clock that jumps
 * forward ends leases early, and one that jumps back changes nothing.
 */
export function createLeaseClock(runtime: Runtime): () => number {
  const wallMs = () => runtime.wallMs?.() ?? runtime.monotonicMs()
  let [since, wallSince] = [runtime.monotonicMs(), wallMs()]
  let missedMs = 0
  return () => {
    const now = runtime.monotonicMs()
    const wall = wallMs()
    const aheadMs = wall - wallSince - (now - since)
    if (Math.abs(aheadMs) > NOTICED_MS) {
      missedMs += Math.max(0, aheadMs)
      since = now
      wallSince = wall
    }
    return now + missedMs
  }
}
