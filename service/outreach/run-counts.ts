import { DAY } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import type { Sweep } from '../workspaces/retention.ts'

/** The runs that each workspace keeps: the engine does not know whose they are. */
export interface RunCounts {
  /** Before a run begins. One that was counted before needs no more room. @throws QuotaExceeded */
  add(workspaceId: string, runId: string): Promise<void>
  /** Forgets runs that the engine has removed, or that never began. */
  sweep(isKept: (runId: string) => Promise<boolean>): Sweep
}

/** The engine keeps a run for months after its end: so often each is looked for. */
const LOOK_EVERY_MS = 1 * DAY
/** Runs that one step looks for. */
const RUNS = 100

export function createRunCounts(base: Base, quotas: Quotas): RunCounts {
  const { sql } = base
  return {
    async add(workspaceId, runId) {
      await inTransaction(base, async (tx) => {
        if ((await tx.query('select 1 from outreach_runs where run_id = ?', [runId])).length > 0) return
        await quotas.check(tx, workspaceId, { runs: 1 })
        await tx.query(
          `insert into outreach_runs (run_id, workspace_id, looked_at) values (?, ?, ${sql.now}) on conflict do nothing`,
          [runId, workspaceId],
        )
      })
    },
    sweep: (isKept) => ({
      name: 'counts of runs',
      async step() {
        const due = await sql.query<{ readonly run_id: string }>(
          `select run_id from outreach_runs where looked_at <= ${sql.now} - ? order by looked_at limit ?`,
          [LOOK_EVERY_MS, RUNS],
        )
        let removed = 0
        for (const { run_id: runId } of due) {
          if (await isKept(runId)) {
            await sql.query(`update outreach_runs set looked_at = ${sql.now} where run_id = ?`, [runId])
          } else {
            await sql.query('delete from outreach_runs where run_id = ?', [runId])
            removed++
          }
        }
        return { removed, more: due.length === RUNS }
      },
    }),
  }
}
