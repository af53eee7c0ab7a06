import type { Runtime, Timer } from '../../runtime/runtime.ts'

/** Detects a client that is silent for too long. */
export interface Silence {
  heard(): void
  stop(): void
}

/** `mostMs` may change: it is read at every check. */
export function watchSilence(runtime: Runtime, mostMs: () => number, silent: (ms: number) => void): Silence {
  let heardAtMs = runtime.monotonicMs()
  let timer = next()

  /** Checks again when the silence would have lasted too long. */
  function next(): Timer {
    return runtime.setTimer(Math.max(1, heardAtMs + mostMs() - runtime.monotonicMs()), look, true)
  }

  function look(): void {
    if (runtime.monotonicMs() - heardAtMs >= mostMs()) silent(mostMs())
    else timer = next()
  }

  return {
    heard() {
      heardAtMs = runtime.monotonicMs()
    },
    stop: () => timer.cancel(),
  }
}
