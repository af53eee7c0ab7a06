import { OnceError } from '../../core/errors.ts'
import type { StoreClock } from '../../store/port.ts'

/** Where the store's time and its few timers come from. A simulation passes its own. */
export interface MemoryClock {
  /** Milliseconds that only grow, from wherever they start. */
  monotonicMs(): number
  /** Asked once, when the store is made: a wall clock that jumps later changes no lease. */
  wallMs?(): number
  setTimer?(ms: number, fire: () => void): { cancel(): void }
}

export interface Time {
  nowMs(): number
  setTimer(ms: number, fire: () => void): { cancel(): void }
  readonly clock: StoreClock
}

export function createTime(source: MemoryClock, testClock: boolean): Time {
  const wallMs = source.wallMs?.() ?? Date.now()
  const startMs = source.monotonicMs()
  let offsetMs = 0
  // Whole milliseconds, as in every other store: a record must not change by being copied from one to another.
  const nowMs = () => Math.floor(wallMs + offsetMs + (source.monotonicMs() - startMs))
  return {
    nowMs,
    setTimer: source.setTimer?.bind(source) ?? systemTimer,
    clock: {
      now: async () => nowMs(),
      advance: async (ms) => {
        if (!testClock) throw new OnceError('bad_option', 'Only a store with `testClock: true` can move its time.')
        if (!Number.isSafeInteger(ms) || ms < 0)
          throw new OnceError('bad_option', '`ms` must be a non-negative integer.')
        offsetMs += ms
      },
    },
  }
}

export const systemClock: MemoryClock = { monotonicMs: () => performance.now() }

function systemTimer(ms: number, fire: () => void): { cancel(): void } {
  const timer = setTimeout(fire, ms)
  return { cancel: () => clearTimeout(timer) }
}
