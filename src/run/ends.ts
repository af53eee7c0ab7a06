import type { Runtime } from '../ledger/runtime.ts'

/** Wakes those in this process who wait for a run. */
export interface Ends {
  /** From here on nothing is missed, until it is disposed of. */
  listen(runId: string): { within(ms: number): Promise<void>; [Symbol.dispose](): void }
  tell(runId: string): void
}

export function createEnds(runtime: Runtime): Ends {
  const waiting = new Map<string, Set<() => void>>()
  return {
    listen(runId) {
      const told = Promise.withResolvers<void>()
      const others = waiting.get(runId) ?? new Set()
      waiting.set(runId, others.add(told.resolve))
      return {
        async within(ms) {
          const timer = runtime.setTimer(ms, told.resolve, false)
          await told.promise
          timer.cancel()
        },
        [Symbol.dispose]() {
          others.delete(told.resolve)
          // A run may end elsewhere, and nobody here is told: what was kept for it must go all the same.
          if (others.size === 0 && waiting.get(runId) === others) waiting.delete(runId)
        },
      }
    },
    tell(runId) {
      for (const wake of waiting.get(runId) ?? []) wake()
    },
  }
}
