import type { SqlSeam } from '../store/sql.ts'
import type { Entry, RunRow, SignalRow } from './entry.ts'
import { entryColumns, entryOf, runColumns, runOf, signalOf } from './stored.ts'

/** How workers take runs and keep them. Leases belong to workers, fences to runs; time is the store's. */
export interface Holding {
  /** Enters, or stays in, the list of living workers. False when others thought that it was dead and took its runs. */
  beat(worker: string, leaseUntil: number, first: boolean): Promise<boolean>
  /** Leaves the list, handing over what it still has. */
  depart(worker: string, now: number): Promise<void>
  /** Makes the runs of dead workers due. */
  freeOrphans(now: number): Promise<void>
  /** Takes runs that are due; nobody else has them from here on. */
  take(worker: string, now: number, limit: number): Promise<readonly RunRow[]>
  journal(runId: string): Promise<{ readonly entries: readonly Entry[]; readonly signals: readonly SignalRow[] }>
}

export function createHolding({ dialect, query }: SqlSeam): Holding {
  const skip = dialect === 'postgres' ? 'for update skip locked' : ''
  return {
    async beat(worker, leaseUntil, first) {
      if (first) {
        await query('insert into onceonly_run_workers (id, lease_until) values (?, ?)', [worker, leaseUntil])
        return true
      }
      const rows = await query('update onceonly_run_workers set lease_until = ? where id = ? returning id', [
        leaseUntil,
        worker,
      ])
      return rows.length > 0
    },
    async depart(worker, now) {
      await query('update onceonly_runs set due_at = ?, worker = null, fence = fence + 1 where worker = ?', [
        now,
        worker,
      ])
      await query('delete from onceonly_run_workers where id = ?', [worker])
    },
    async freeOrphans(now) {
      const dead = await query<{ id: string }>('select id from onceonly_run_workers where lease_until < ?', [now])
      for (const { id } of dead) {
        // Its row goes first: from then on it cannot believe that it lives. A crash in between is mended below.
        await query('delete from onceonly_run_workers where id = ? and lease_until < ?', [id, now])
      }
      await query(
        `update onceonly_runs set due_at = ?, worker = null, fence = fence + 1
          where worker is not null and not exists (select 1 from onceonly_run_workers w where w.id = onceonly_runs.worker)`,
        [now],
      )
    },
    async take(worker, now, limit) {
      const rows = await query(
        `update onceonly_runs set worker = ?, fence = fence + 1, due_at = null, state = 'running'
          where id in (select id from onceonly_runs where due_at <= ? and worker is null
            order by due_at limit ? ${skip})
          returning ${runColumns}`,
        [worker, now, limit],
      )
      return rows.map(runOf)
    },
    async journal(runId) {
      const names = Object.keys(entryColumns).join(', ')
      const entries = await query(`select ${names} from onceonly_run_steps where run_id = ? order by position`, [runId])
      const signals = await query(
        'select id, name, number, payload from onceonly_run_signals where run_id = ? order by number',
        [runId],
      )
      return { entries: entries.map(entryOf), signals: signals.map(signalOf) }
    },
  }
}
