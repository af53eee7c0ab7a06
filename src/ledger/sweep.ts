import type { Context } from './context.ts'
import { limits } from './core/limits.ts'

/** Removes what is past its end, in bounded steps. The cursor goes on where the last round stopped. */
export interface Sweeper {
  round(): Promise<number>
}

export function createSweeper({ store, events }: Context): Sweeper {
  let cursor: string | null = null
  return {
    async round() {
      let removed = 0
      for (let step = 0; step < limits.sweepSteps; step++) {
        const swept = await store.upkeep.sweep(cursor, limits.sweepRows, { timeoutMs: limits.storeCallMs })
        removed += swept.removed
        cursor = swept.cursor
        if (cursor === null) break
      }
      if (removed > 0) events.emit({ kind: 'swept', removed })
      return removed
    },
  }
}
