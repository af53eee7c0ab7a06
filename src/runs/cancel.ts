import type { SqlSeam, SqlTx } from '../ledger/store/sql.ts'
import { RUN_TOPIC } from './tables.ts'

/**
 * Ends a run, also one that a worker drives: its fence moves, so that nothing of it is recorded any more. Where it had a place
 * in a queue, another run may begin.
 */
export async function cancelBy(
  query: SqlTx['query'],
  { now, wake }: Pick<SqlSeam, 'now' | 'wake'>,
  runId: string,
): Promise<boolean> {
  const ended = await query(
    `update onceonly_runs set state = 'cancelled', ended_at = ${now}, due_at = null, worker = null, fence = fence + 1,
        turn = null, place = case when place = 'admitted' then place end
      where id = ? and ended_at is null returning id, case when queue is not null then ${wake(RUN_TOPIC)} end as woken`,
    [runId],
  )
  return ended.length > 0
}
