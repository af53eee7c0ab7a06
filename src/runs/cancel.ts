import type { Script, SqlSeam } from '../ledger/store/sql.ts'
import { markDue } from './locks.ts'
import { RUN_TOPIC } from './tables.ts'

/** Which runs can be cancelled: those that have not ended, and are not about to. */
export const IS_LIVE = 'ended_at is null and cancelled_at is null'

/**
 * Ends runs, also those that a worker drives: their fences move, so that nothing of them is recorded any more. Those that
 * declared clean-ups are due for a worker, which ends them behind these. A place in a queue is free with the end.
 */
export function cancelSql({ now }: SqlSeam): string {
  return `update onceonly_runs set cancelled_at = ${now}, worker = null, fence = fence + 1, failure = null, takeovers = 0,
    state = case when cleans = 1 then 'running' else 'cancelled' end, deadline_at = null,
    ended_at = case when cleans = 1 then null else ${now} end, due_at = case when cleans = 1 then ${now} end,
    turn = null, place = case when place = 'admitted' then place end`
}

/** Cancels one run; its parent becomes due. False when it had ended before. */
export function* cancelOne(sql: SqlSeam, runId: string, which = '', values: readonly string[] = []): Script<boolean> {
  const [found] = yield {
    text: `${cancelSql(sql)} where id = ? ${which} and ${IS_LIVE} returning parent, ${sql.wake(RUN_TOPIC)} as woken`,
    values: [runId, ...values],
  }
  const parent = found?.['parent'] as string | null | undefined
  if (typeof parent === 'string') yield markDue(sql, [parent])
  return found !== undefined
}
