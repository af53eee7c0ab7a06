import type { Runtime } from '../runtime/runtime.ts'
import type { RunRow } from './entry.ts'

/** The end of a run, for callers that wait for it. */
export type RunEnd = Pick<RunRow, 'id' | 'state' | 'result' | 'failure'>

/** Wakes those in this process who wait for a run. */
export interface Ends {
  /** From this call until its disposal no end is missed. `within` returns the end if it was announced in time. */
  listen(runId: string): { within(ms: number): Promise<RunEnd | null>; [Symbol.dispose](): void }
  /** The run was put down; with its end, if it has ended. */
  announce(runId: string, end: RunEnd | null): void
}

export function createEnds(runtime: Runtime): Ends {
  const waiting = new Map<string, Set<(end: RunEnd | null) => void>>()
  return {
    listen(runId) {
      const announced = Promise.withResolvers<RunEnd | null>()
      const others = waiting.get(runId) ?? new Set()
      waiting.set(runId, others.add(announced.resolve))
      return {
        async within(ms) {
          const timer = runtime.setTimer(ms, () => announced.resolve(null), false)
          const end = await announced.promise
          timer.cancel()
          return end
        },
        [Symbol.dispose]() {
          others.delete(announced.resolve)
          // A run may end in another process without an announcement here: its listeners are removed all the same.
          if (others.size === 0 && waiting.get(runId) === others) waiting.delete(runId)
        },
      }
    },
    announce(runId, end) {
      for (const wake of waiting.get(runId) ?? []) wake(end)
    },
  }
}
