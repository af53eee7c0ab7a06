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
