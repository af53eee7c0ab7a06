import type { Runtime } from '../runtime/runtime.ts'
import type { RunRow } from './entry.ts'

/** What whoever waits for a run wants to know. */
export type RunEnd = Pick<RunRow, 'id' | 'state' | 'result' | 'failure'>

/** Wakes those in this process who wait for a run. */
export interface Ends {
  /** From here on nothing is missed, until it is disposed of. `within` answers the end, where it was told. */
  listen(runId: string): { within(ms: number): Promise<RunEnd | null>; [Symbol.dispose](): void }
  /** The run was put down; with its end, if it has ended. */
  tell(runId: string, end: RunEnd | null): void
}

export function createEnds(runtime: Runtime): Ends {
  const waiting = new Map<string, Set<(end: RunEnd | null) => void>>()
  return {
    listen(runId) {
      const told = Promise.withResolvers<RunEnd | null>()
      const others = waiting.get(runId) ?? new Set()
      waiting.set(runId, others.add(told.resolve))
      return {
        async within(ms) {
          const timer = runtime.setTimer(ms, () => told.resolve(null), false)
          const end = await told.promise
          timer.cancel()
          return end
        },
        [Symbol.dispose]() {
          others.delete(told.resolve)
          // A run may end elsewhere, and nobody here is told: what was kept for it must go all the same.
          if (others.size === 0 && waiting.get(runId) === others) waiting.delete(runId)
        },
      }
    },
    tell(runId, end) {
      for (const wake of waiting.get(runId) ?? []) wake(end)
    },
  }
}
