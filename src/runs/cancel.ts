import type { SqlTx } from '../ledger/store/sql.ts'

/** Ends a run, also one that a worker drives: its fence moves, so that nothing of it is recorded any more. */
export async function cancelBy(query: SqlTx['query'], now: string, runId: string): Promise<boolean> {
  const ended = await query(
    `update onceonly_runs set state = 'cancelled', ended_at = ${now}, due_at = null, worker = null, fence = fence + 1
      where id = ? and ended_at is null returning id`,
    [runId],
  )
  return ended.length > 0
}
