import type { SweepStep } from '../runtime/sweep-loop.ts'
import type { Context } from './context.ts'
import { limits } from './core/limits.ts'
import type { Swept } from './store/port.ts'

/** Removes what is past its end, in bounded steps. */
export interface Sweeper {
  /** One step of the background sweep. */
  step(): Promise<SweepStep>
  /** Many steps at once, for manual sweeps. The next round continues where this one stopped. */
  round(): Promise<number>
}

/**
 * Records that were written together mostly end together, so the sweep follows the place where they end: as long as most of
 * what it sees is removed, the next step begins behind it. When those there still live, it walks through the whole table,
 * where others may have a shorter life. It pauses after some steps without a removal, later continues in the same place, and
 * follows what it finds.
 */
export function createSweeper({ store, events }: Context): Sweeper {
  let front: string | null = null
  let cursor: string | null = null
  let walking = false
  let stepsInVain = 0
  /** Rows of a table that one step saw as a whole. */
  let wholeRows = 0

  async function sweep(from: string | null): Promise<Swept> {
    const swept = await store.upkeep.sweep(from, limits.ledgerSweepRows, { timeoutMs: limits.storeCallMs })
    if (swept.removed > 0) events.emit({ kind: 'swept', removed: swept.removed })
    return swept
  }

  async function follow(): Promise<SweepStep> {
    const isWhole = front === null
    const swept = await sweep(front)
    // Behind the last record there is nothing to follow; new ones may even stand before it.
    if (swept.cursor === null || removedMost(swept)) front = swept.cursor
    walking = swept.cursor === null || !removedMost(swept)
    if (!isWhole || swept.cursor !== null) return { more: true, waitedMs: swept.waitedMs ?? 0 }
    // All of a small table: there is nothing to walk through.
    walking = false
    const isIdle = swept.looked === wholeRows && swept.removed === 0
    wholeRows = swept.looked
    return { more: false, isIdle, waitedMs: swept.waitedMs ?? 0 }
  }

  async function walk(): Promise<SweepStep> {
    const swept = await sweep(cursor)
    cursor = swept.cursor
    if (cursor !== null && removedMost(swept)) front = cursor
    stepsInVain = swept.removed > 0 ? 0 : stepsInVain + 1
    walking = cursor !== null && stepsInVain < limits.sweepIdleSteps
    if (!walking) stepsInVain = 0
    return { more: walking, waitedMs: swept.waitedMs ?? 0 }
  }

  return {
    step: () => (walking ? walk() : follow()),
    async round() {
      let removed = 0
      for (let step = 0; step < limits.sweepSteps; step++) {
        const swept = await sweep(cursor)
        removed += swept.removed
        cursor = swept.cursor
        if (cursor === null) break
      }
      return removed
    },
  }
}

function removedMost({ removed, looked }: Swept): boolean {
  return removed > 0 && 2 * removed >= looked
}
