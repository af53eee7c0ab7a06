import { limits } from '../ledger/core/limits.ts'
import type { Script, SqlSeam } from '../ledger/store/sql.ts'
import { setAttributes } from './attributes.ts'
import { cancelOne, cancelSql, IS_LIVE } from './cancel.ts'
import type { Attributes, Entry, Holder, RunRow } from './entry.ts'
import { lockRuns } from './locks.ts'
import { beginStatement } from './queued.ts'
import { resumeOne, seeingTwins } from './resume.ts'
import { runColumns, runOf } from './stored.ts'
import { RUN_TOPIC } from './tables.ts'
import type { Writes } from './writes.ts'

/** What touches a run and its children at once. A parent hears of an end in the transaction that records it. */
export interface Tree {
  /**
   * Records the step that waits for a child, and starts the child, if there is none of its id: both, or neither. `lost` when
   * another worker has the parent.
   */
  startChild(holder: Holder, entry: Entry, child: RunRow): Promise<'started' | 'there' | 'lost'>
  /** Records that the step waits again, and resumes a child that failed or was cancelled. */
  resumeChild(holder: Holder, entry: Entry, child: Pick<RunRow, 'id' | 'ifParentEnds'>): Promise<boolean>
  /** Records attributes of the run with the step that sets them. */
  setAttributes(holder: Holder, entry: Entry, attributes: Attributes): Promise<boolean>
  /** Records that a run has declared what to do when it is cancelled. */
  declareCleanUp(holder: Holder, entry: Entry): Promise<boolean>
  /** The run as it stands, or the last of those that continue it; null when there is none. */
  lastOf(runId: string): Promise<RunRow | null>
  /** Records that the branch of a child lost a race, and cancels the child, unless it is to continue. */
  abandonChild(holder: Holder, entry: Entry, childId: string): Promise<boolean>
  /** Cancels a run. False when it had ended before. */
  cancel(runId: string): Promise<boolean>
  /** Cancels children whose parent has ended, and theirs; answers their ids. */
  passDown(): Promise<readonly string[]>
}

/** A child that ends with its parent, which has ended or is cancelled. What the parent starts to clean up is none of these. */
export const IS_STRAY = `if_parent_ends = 'cancel' and ${IS_LIVE}
  and exists (select 1 from onceonly_runs p where p.id = onceonly_runs.parent
    and (p.ended_at is not null or p.cancelled_at > onceonly_runs.started_at))`

export function createTree(sql: SqlSeam, writes: Pick<Writes, 'putStatement'>): Tree {
  const { dialect, query } = sql

  async function lastOf(runId: string): Promise<RunRow | null> {
    for (let id = runId; ; ) {
      const [found] = await query(`select ${runColumns} from onceonly_runs where id = ?`, [id])
      const run = found === undefined ? null : runOf(found)
      if (run === null || run.continuedAs === null) return run
      id = run.continuedAs
    }
  }

  /** The run to act on, locked with another one. What continues it meanwhile is locked too. */
  function* lockLast(runId: string, also: readonly string[]): Script<string> {
    for (let id = runId; ; ) {
      yield* lockRuns(sql, [...also, id])
      const [found] = yield { text: 'select continued_as from onceonly_runs where id = ?', values: [id] }
      const next = found?.['continued_as'] as string | null | undefined
      if (typeof next !== 'string') return id
      id = next
    }
  }

  return {
    lastOf,
    startChild: (holder, entry, child) =>
      sql.script(function* () {
        // The fence is checked with the entry: a parent that was cancelled meanwhile starts nothing.
        if ((yield writes.putStatement(holder, entry)).length === 0) return 'lost'
        return (yield beginStatement(sql, child)).length > 0 ? 'started' : 'there'
      }),
    setAttributes: (holder, entry, attributes) =>
      sql.script(function* () {
        if ((yield writes.putStatement(holder, entry)).length === 0) return false
        yield* setAttributes(sql, holder.runId, attributes)
        return true
      }),
    declareCleanUp: (holder, entry) =>
      sql.script(function* () {
        yield* lockRuns(sql, [holder.runId])
        if ((yield writes.putStatement(holder, entry)).length === 0) return false
        yield { text: 'update onceonly_runs set cleans = 1 where id = ?', values: [holder.runId] }
        return true
      }),
    resumeChild: (holder, entry, { id, ifParentEnds }) =>
      seeingTwins(() =>
        sql.script(function* () {
          const last = yield* lockLast(id, [holder.runId])
          if ((yield writes.putStatement(holder, entry)).length === 0) return false
          yield* resumeOne(sql, last)
          yield {
            text: 'update onceonly_runs set if_parent_ends = ? where id = ? and parent = ?',
            values: [ifParentEnds, last, holder.runId],
          }
          return true
        }),
      ),
    abandonChild: (holder, entry, childId) =>
      sql.script(function* () {
        const last = yield* lockLast(childId, [holder.runId])
        if ((yield writes.putStatement(holder, entry)).length === 0) return false
        yield* cancelOne(sql, last, "and parent = ? and if_parent_ends = 'cancel'", [holder.runId])
        return true
      }),
    async cancel(runId) {
      const parent = (await lastOf(runId))?.parent ?? null
      return sql.script(function* () {
        return yield* cancelOne(sql, yield* lockLast(runId, parent === null ? [] : [parent]))
      })
    },
    async passDown() {
      const passed: string[] = []
      const strays = `select id from onceonly_runs where ${IS_STRAY} order by id limit ${limits.runSweepRuns}`
      for (;;) {
        const ids = await query<{ id: string }>(
          `${cancelSql(sql)} where id in (${strays} ${dialect.lock('for update')}) and ${IS_LIVE} returning id, ${sql.wake(RUN_TOPIC)} as woken`,
        )
        if (ids.length === 0) return passed
        passed.push(...ids.map(({ id }) => id))
      }
    },
  }
}
