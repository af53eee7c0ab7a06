import { DAY, type SqlTx } from 'onceonly'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Quotas } from '../workspaces/quotas.ts'
import type { Sweep } from '../workspaces/retention.ts'

/** The runs that each workspace keeps: the engine does not know whose they are. */
export interface RunCounts {
  /** Before a run begins. One that was counted before needs no more room. @throws QuotaExceeded */
  add(workspaceId: string, runId: string, leadId: string): Promise<void>
  /** The same for many runs, in the transaction of the caller. @throws QuotaExceeded */
  addAll(tx: Pick<SqlTx, 'query'>, workspaceId: string, runs: readonly CountedRun[]): Promise<void>
  /** Forgets runs that the engine has removed, or that never began. */
  sweep(isKept: (runId: string) => Promise<boolean>): Sweep
}

export interface CountedRun {
  readonly runId: string
  /** The run of its campaign; null for one of its own. */
  readonly campaign: string | null
  /** The lead that it is for; null for the runs of a campaign itself. */
  readonly leadId: string | null
}

/** The engine keeps a run for months after its end: so often each is looked for. */
const LOOK_EVERY_MS = 1 * DAY
/** Runs that one step looks for. */
const RUNS = 100

export function createRunCounts(base: Base, quotas: Quotas): RunCounts {
  const { sql } = base
  const records = sql.dialect.recordsOf({ run_id: 'text', campaign: 'text', lead_id: 'text' })
  const addText = `insert into outreach_runs (run_id, workspace_id, looked_at, campaign, lead_id)
    select x.run_id, ?, ${sql.now}, x.campaign, x.lead_id from ${records} where true order by x.run_id on conflict do nothing`

  async function addAll(tx: Pick<SqlTx, 'query'>, workspaceId: string, runs: readonly CountedRun[]): Promise<void> {
    await quotas.check(tx, workspaceId, { runs: runs.length })
    const rows = runs.map(({ runId, campaign, leadId }) => ({ run_id: runId, campaign, lead_id: leadId }))
    await tx.query(addText, [workspaceId, JSON.stringify(rows)])
  }

  return {
    addAll,
    async add(workspaceId, runId, leadId) {
      await inTransaction(base, async (tx) => {
        if ((await tx.query('select 1 from outreach_runs where run_id = ?', [runId])).length > 0) return
        await addAll(tx, workspaceId, [{ runId, campaign: null, leadId }])
      })
    },
    sweep: (isKept) => ({
      name: 'counts of runs',
      from: { text: 'select min(looked_at) from outreach_runs', agoMs: LOOK_EVERY_MS },
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
