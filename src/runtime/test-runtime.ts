import type { Runtime } from './runtime.ts'

/** Time that moves only on request of a test. */
export interface TestRuntime extends Runtime {
  /** Fires what falls due on the way, in order, and lets everything that follows from it happen. */
  advance(ms: number): Promise<void>
  /** Lets everything happen that is ready now. */
  settle(): Promise<void>
  /** Timers that are set, by whether they keep a process alive. */
  pending(): { readonly foreground: number; readonly background: number }
}

interface Pending {
  readonly at: number
  readonly fire: () => void
  readonly background: boolean
}

/** Longer than any chain of promises in one turn of these modules. */
const TURNS = 20

export function createTestRuntime(): TestRuntime {
  const timers = new Set<Pending>()
  let nowMs = 1_000
  let ids = 0

  async function settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => void setImmediate(resolve))
  }

  function nextBefore(untilMs: number): Pending | null {
    let next: Pending | null = null
    for (const timer of timers) if (timer.at <= untilMs && (next === null || timer.at < next.at)) next = timer
    return next
  }

  return {
    monotonicMs: () => nowMs,
    setTimer(ms, fire, background) {
      const timer = { at: nowMs + ms, fire, background }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
    soon: (fire) => void setImmediate(fire),
    // In the middle: back-offs are three quarters of their full length.
    random: () => 0.5,
    newId: () => String(++ids).padStart(32, '0'),
    settle,
    async advance(ms) {
      const untilMs = nowMs + ms
      await settle()
      for (let next = nextBefore(untilMs); next !== null; next = nextBefore(untilMs)) {
        timers.delete(next)
        nowMs = Math.max(nowMs, next.at)
        next.fire()
        await settle()
      }
      nowMs = untilMs
    },
    pending() {
      const background = [...timers].filter((timer) => timer.background).length
      return { foreground: timers.size - background, background }
    },
  }
}
