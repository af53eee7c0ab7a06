import type { Runtime } from './runtime.ts'
import { sleep } from './runtime.ts'

/** Background work that repeats until it is stopped. A round that fails is reported, and the next one comes anyway. */
export interface Loop {
  stop(): Promise<void>
}

export interface LoopOptions {
  readonly runtime: Runtime
  everyMs(): number
  round(): Promise<void>
  failed(error: unknown): void
}

export function startLoop({ runtime, everyMs, round, failed }: LoopOptions): Loop {
  let stopped = false
  let running: Promise<void> = Promise.resolve()

  async function turn(): Promise<void> {
    try {
      await round()
    } catch (error) {
      failed(error)
    }
  }

  async function forever(): Promise<void> {
    for (;;) {
      // Spread out, so that many processes on one store do not all come at once.
      await sleep(runtime, everyMs() * (0.5 + runtime.random()), true)
      if (stopped) return
      running = turn()
      await running
    }
  }

  void forever()
  return {
    async stop() {
      stopped = true
      await running
    },
  }
}
