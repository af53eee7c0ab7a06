import { randomBytes } from 'node:crypto'
import { uptime } from 'node:os'

/** Time, randomness and scheduling, as arguments: a simulator gives its own, and every run of it can be repeated. */
export interface Runtime {
  /** Never goes back, whatever happens to the wall clock. It stands still while the machine is suspended. */
  monotonicMs(): number
  /** The time of day, which also passes while the machine is suspended. Without it, suspension is not detected. */
  wallMs?(): number
  /** Since the machine started, suspended or not; in whole seconds on some systems, and not cheap. It cannot be set. */
  upMs?(): number
  /** `background` timers do not keep a process alive. */
  setTimer(ms: number, fire: () => void, background: boolean): Timer
  /** Runs after everything that is ready now, so that it shares one commit. */
  soon(fire: () => void): void
  /** In [0, 1). */
  random(): number
  /** 32 unique hexadecimal digits. */
  newId(): string
}

/** A value, or a promise of it where something has to be waited for: what is at hand costs no turn of the event loop. */
export type Awaitable<T> = T | Promise<T>

export interface Timer {
  cancel(): void
}

const PREFIX_BYTES = 10
const COUNTER_DIGITS = 12

export function createRuntime(): Runtime {
  // Ids need to be unique, not secret: a random prefix per runtime and a counter cost a tenth of fresh randomness.
  const prefix = randomBytes(PREFIX_BYTES).toString('hex')
  let counter = 0
  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    upMs: () => uptime() * 1_000,
    setTimer(ms, fire, background) {
      const timer = setTimeout(fire, ms)
      if (background) timer.unref()
      return { cancel: () => clearTimeout(timer) }
    },
    soon: (fire) => void setImmediate(fire),
    random: Math.random,
    newId: () => prefix + (++counter).toString(16).padStart(COUNTER_DIGITS, '0'),
  }
}

export function sleep(runtime: Runtime, ms: number, background = false): Promise<void> {
  return new Promise((resolve) => void runtime.setTimer(ms, resolve, background))
}

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

/** What the application gives may be a promise of another class, or of another realm, as under Jest. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
