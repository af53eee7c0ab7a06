import { isOnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { Script, SqlSeam } from '../ledger/store/sql.ts'
import { ERASED } from './erase.ts'
import { readFailure, TIMED_OUT } from './stored.ts'
import { RUN_TOPIC } from './tables.ts'

/**
 * Makes a run go on that failed, was cancelled, or is parked: from its journal, with new attempts of what failed. False when
 * it is none of these, ended too long ago, or has cleaned up after itself.
 */
export function* resumeOne(sql: SqlSeam, runId: string): Script<boolean> {
  const { now } = sql
  const woken = `${sql.wake(RUN_TOPIC)} as woken`
  // A parked run continues where it stands: none of its steps has failed.
  const parked = yield {
    text: `update onceonly_runs set takeovers = 0, state = 'running', failure = null, due_at = ${now}
      where id = ? and ended_at is null and takeovers >= ? returning ${woken}`,
    values: [runId, limits.runTakeovers],
  }
  if (parked.length > 0) return true
  const [before] = yield { text: 'select state, failure, cleans from onceonly_runs where id = ?', values: [runId] }
  // Its time was over, and all that it did is undone.
  const code = readFailure((before?.['failure'] ?? null) as string | null)?.code
  if (Number(before?.['cleans']) === TIMED_OUT && code === 'run_timed_out') return false
  // Of a child whose parent has ended no caller waits for the end: it continues by itself.
  const resumed = yield {
    text: `update onceonly_runs set ${beginsAgain(now)}, failure = null, ended_at = null, fence = fence + 1, takeovers = 0,
        cancelled_at = case when state = 'failed' then cancelled_at end,
        if_parent_ends = case when exists (select 1 from onceonly_runs p
          where p.id = onceonly_runs.parent and p.ended_at is not null) then 'continue' else if_parent_ends end
      where id = ? and definition <> '${ERASED}' and ended_at >= ${now} - ? and (state = 'failed' or state = 'cancelled' and not exists (${CLEANED}))
        and not exists (${TWIN})
      returning ${woken}`,
    values: [runId, limits.runKeepMs],
  }
  if (resumed.length === 0) return false
  if (before?.['state'] === 'cancelled') {
    // Its children were cancelled with it, and go on with it.
    yield {
      text: `update onceonly_run_steps set state = 'retrying', due_at = ${now}
        where run_id = ? and kind = 'child' and state = 'waiting'`,
      values: [runId],
    }
    return true
  }
  // The run has not ended there after all.
  yield {
    text: `delete from onceonly_run_steps
      where run_id = ? and kind = 'end' and state = 'failed' and not exists (${PASSED})`,
    values: [runId],
  }
  yield {
    text: `update onceonly_run_steps set state = 'retrying', attempts = 0, due_at = ${now}
      where run_id = ? and state = 'failed' and not exists (${PASSED})`,
    values: [runId],
  }
  return true
}

/** Another run has taken the place of its dedupKey. */
const TWIN = `select 1 from onceonly_runs twin where twin.queue = onceonly_runs.queue
  and twin.dedup_key = onceonly_runs.dedup_key and twin.dedup_key is not null and twin.ended_at is null`

/** The run that is in the way of resuming this one. */
export async function twinOf({ query }: SqlSeam, runId: string): Promise<string | null> {
  const text = `select (${TWIN.replace('select 1', 'select twin.id')}) as twin from onceonly_runs where id = ?`
  const [found] = await query(text, [runId])
  return (found?.['twin'] ?? null) as string | null
}

/**
 * An enqueue may take the place of the dedupKey in the middle. The store refuses that with an error of its own, and shows
 * the other run when it is asked again.
 */
export async function seeingTwins<T>(resume: () => Promise<T>): Promise<T> {
  try {
    return await resume()
  } catch (error) {
    if (isOnceError(error)) throw error
    return await resume()
  }
}

/**
 * A run of a queue is let in again like any other. The time when it was let in before is overwritten then, so that must not
 * happen while its queue still counts it.
 */
function beginsAgain(now: string): string {
  const counted = `select case when admitted_at + q.rate_ms > ${now} then admitted_at + q.rate_ms end
    from onceonly_run_queues q where q.name = onceonly_runs.queue`
  return `state = case when queue is null then 'running' else 'queued' end,
    due_at = case when queue is null then ${now} end, 
    deadline_at = case when queue is null and (state = 'cancelled' or cancelled_at is null) then ${now} + timeout_ms end,
    place = case when queue is not null then 'delayed' end,
    ready_at = case when queue is not null then coalesce((${counted}), ${now}) end`
}

/** What was done cannot be gone on from once it was undone. */
const CLEANED = `select 1 from onceonly_run_steps s where s.run_id = onceonly_runs.id and substr(s.branch, 1, 7) = '$cancel'`

/**
 * A failure that the run has left behind: its body caught it and continued, in its own branch or above. Retrying such a step
 * would take the run along another path than before. A race that failed because its branches did, or an end by a failure,
 * leaves none behind.
 */
const PASSED = `select 1 from onceonly_run_steps later
  where later.run_id = onceonly_run_steps.run_id and later.position > onceonly_run_steps.position
    and not (later.kind = 'end' and later.state = 'failed')
    and not (later.kind = 'race' and later.state = 'failed'
      and substr(onceonly_run_steps.branch, 1, length(later.step_id) + 1) = later.step_id || '/')
    and (later.branch in (onceonly_run_steps.branch, '')
      or substr(onceonly_run_steps.branch, 1, length(later.branch) + 1) = later.branch || '/')`
