import type { Runtime } from './runtime.ts'

/** Wakes a loop that waits: something may have changed, or its time has come. */
export interface Bell {
  ring(): void
  /** Until it rings, or has rung since the last wait, and no longer than this. */
  rung(ms: number): Promise<void>
  /** Waits all of this time; a ring meanwhile counts afterwards. `end` cuts it short. */
  quiet(ms: number): Promise<void>
  end(): void
}

export function createBell(runtime: Runtime): Bell {
  let wake: (() => void) | null = null
  let rest: (() => void) | null = null
  let missed = false

  function wait(ms: number, waiting: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      // It keeps its process alive: a loop works until it is stopped.
      const timer = runtime.setTimer(ms, resolve, false)
      waiting(() => {
        timer.cancel()
        resolve()
      })
    })
  }

  return {
    ring() {
      missed = true
      wake?.()
    },
    async rung(ms) {
      if (!missed) await wait(ms, (done) => (wake = done))
      missed = false
      wake = null
    },
    async quiet(ms) {
      await wait(ms, (done) => (rest = done))
      rest = null
    },
    end() {
      missed = true
      wake?.()
      rest?.()
    },
  }
}
