import type { SqlValue } from 'onceonly'
import type { Log } from '../logs.ts'
import { rest, startRounds } from '../rounds.ts'
import type { Base } from '../store.ts'

/** Removes what is past its retention, a bounded number of rows or files at a time. Safe in many processes at once. */
export interface Sweep {
  readonly name: string
  /** `more`: the next step will probably remove something, too. */
  step(): Promise<{ readonly removed: number; readonly more: boolean }>
}

/** One statement with `returning` that ends with a limit: `most` rows per step, a short statement whatever the size of the table. */
export function rowSweep(
  { sql }: Base,
  name: string,
  remove: string,
  values: readonly SqlValue[],
  most: number,
): Sweep {
  return {
    name,
    async step() {
      const removed = (await sql.query(remove, [...values, most])).length
      return { removed, more: removed === most }
    },
  }
}

/** Rows that another process is removing are left to it. */
export function unheld({ sql }: Base): string {
  return sql.dialect.lock('for update skip locked')
}

/** The part of its time that the sweep works at most: what is left serves callers. */
const SHARE = 0.25
const REST_LEAST_MS = 10

interface Parts {
  readonly sweeps: readonly Sweep[]
  /** The pause when nothing is left to remove, or a step failed. */
  readonly everyMs: number
  readonly log: Log
}

/** One loop for all of them, so that they never work at once. */
export function startRetention({ sweeps, everyMs, log }: Parts): { stop(): Promise<void> } {
  async function drain({ name, step }: Sweep, signal: AbortSignal): Promise<void> {
    let removed = 0
    for (let more = true; more && !signal.aborted; ) {
      const beganMs = performance.now()
      const done = await step()
      removed += done.removed
      more = done.more
      if (more) await rest(signal, Math.max(REST_LEAST_MS, (performance.now() - beganMs) * (1 / SHARE - 1)))
    }
    if (removed > 0) log.info({ event: 'retention.swept', what: name, removed }, 'removed what is past its retention')
  }

  // The pause comes first: a process that comes back finishes what it had begun before it removes what that may ask for.
  return startRounds(everyMs, async (signal) => {
    for (const sweep of sweeps) {
      if (signal.aborted) return
      await drain(sweep, signal).catch((err: unknown) =>
        log.warn({ event: 'retention.failed', what: sweep.name, err }, 'sweep failed, retrying'),
      )
    }
  })
}
