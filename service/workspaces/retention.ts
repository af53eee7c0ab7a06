import type { SqlValue } from 'onceonly'
import type { Log } from '../logs.ts'
import { rest, startRounds } from '../rounds.ts'
import type { Base } from '../store.ts'

/** Removes what is past its retention, a bounded number of rows or files at a time. Safe in many processes at once. */
export interface Sweep {
  readonly name: string
  /** Before that nothing can be there to remove. Without it every round begins with a step. */
  readonly from?: Earliest
  /** `more`: the next step will probably remove something, too. */
  step(): Promise<{ readonly removed: number; readonly more: boolean }>
}

/** When what is removed first is past its retention. */
export interface Earliest {
  /** A query of one value, by an index: a time in milliseconds, or null while there is nothing. */
  readonly text: string
  readonly agoMs: number
}

/**
 * The sweeps that may have something to remove. There is almost never anything, and to find that out by a removal each costs
 * a transaction, on SQLite the only writer, too. So one statement asks for all of them.
 */
export async function dueOf({ sql }: Pick<Base, 'sql'>, sweeps: readonly Sweep[]): Promise<readonly Sweep[]> {
  const asked = sweeps.flatMap(({ from }, place) =>
    from === undefined ? [] : [`select ${place} as place, (${from.text}) as at, ${Math.ceil(from.agoMs)} as ago`],
  )
  if (asked.length === 0) return sweeps
  const text = `select place from (${asked.join(' union all ')}) as retained where at <= ${sql.now} - ago`
  const due = new Set((await sql.query<{ place: unknown }>(text)).map(({ place }) => Number(place)))
  return sweeps.filter(({ from }, place) => from === undefined || due.has(place))
}

/** One statement with `returning` that ends with a limit: `most` rows per step, a short statement whatever the size of the table. */
export function rowSweep(
  { sql }: Base,
  name: string,
  remove: string,
  { values, most, from }: { readonly values: readonly SqlValue[]; readonly most: number; readonly from: Earliest },
): Sweep {
  return {
    name,
    from,
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
  /** Those that may have something to remove. */
  due(sweeps: readonly Sweep[]): Promise<readonly Sweep[]>
  /** The pause when nothing is left to remove, or a step failed. */
  readonly everyMs: number
  readonly log: Log
}

/** One loop for all of them, so that they never work at once. */
export function startRetention({ sweeps, due, everyMs, log }: Parts): { stop(): Promise<void> } {
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
    const failed = (what: string) => (err: unknown) =>
      log.warn({ event: 'retention.failed', what, err }, 'sweep failed, retrying')
    const wanted = await due(sweeps).catch(failed('all'))
    for (const sweep of wanted ?? []) {
      if (signal.aborted) return
      await drain(sweep, signal).catch(failed(sweep.name))
    }
  })
}
