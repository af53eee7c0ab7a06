import type { Loop } from './loop.ts'
import { startLoop } from './loop.ts'
import type { Runtime } from './runtime.ts'

export interface SweepLoopOptions {
  readonly runtime: Runtime
  /** The pause when nothing is left to remove, or a step failed. */
  readonly everyMs: number
  /** It doubles up to this while steps are idle; left out, it does not. */
  readonly idleMs?: number
  /** The part of its time that the sweep works at most, while there is something to remove. */
  readonly share: number
  step(): Promise<SweepStep>
  failed(error: unknown): void
}

export interface SweepStep {
  /** Whether the next step will probably remove something. */
  readonly more: boolean
  /** Nothing was removed, and nothing has been added either. */
  readonly isIdle?: boolean
  /** The part of the step's time in which it only waited for its turn: that was not work. */
  readonly waitedMs: number
}

/** A step that is over within the precision of a clock took this long: the loop never spins. */
const STEP_LEAST_MS = 1

/**
 * Removes in short steps. They follow each other while there is more to remove, so that the sweep keeps up with whatever
 * is written, and rest in between, so that the store belongs to others for the rest of the time.
 */
export function startSweepLoop({ runtime, everyMs, idleMs = everyMs, share, step, failed }: SweepLoopOptions): Loop {
  let restMs = everyMs
  let idlePauseMs = everyMs
  return startLoop({
    runtime,
    everyMs: () => restMs,
    async round() {
      // Also after a step that throws.
      restMs = everyMs
      const beganAtMs = runtime.monotonicMs()
      const { more, isIdle = false, waitedMs } = await step()
      idlePauseMs = isIdle ? Math.min(idleMs, 2 * idlePauseMs) : everyMs
      restMs = idlePauseMs
      if (!more) return
      const tookMs = Math.max(STEP_LEAST_MS, runtime.monotonicMs() - beganAtMs)
      const workedMs = Math.max(STEP_LEAST_MS, tookMs - waitedMs)
      restMs = Math.min(everyMs, Math.max(0, workedMs / share - tookMs))
    },
    failed,
  })
}
