import type { Script, SqlSeam, Statement } from '../ledger/store/sql.ts'
import type { RunRow } from './entry.ts'
import { RunError } from './errors.ts'

/** The run that continues another one, and what it takes over. */
export interface Next {
  readonly row: RunRow
  /** Signals that the run before it has taken: the others go with it. */
  readonly taken: readonly string[]
}

/** Another run may have the id that is next. */
const TRIES = 3

/** Starts the run that continues one that has just ended, in the same transaction. */
export function* startNext(
  sql: SqlSeam,
  runId: string,
  { row, taken }: Next,
  start: (row: RunRow) => Statement,
): Script<void> {
  const id = yield* startUnder(runId, row, start)
  const { dialect } = sql
  if (row.queue !== null) yield* keepPlace(runId, id)
  const isTaken = `id in (select id from ${dialect.recordsOf({ id: 'text' })})`
  yield { text: 'update onceonly_runs set continued_as = ? where id = ?', values: [id, runId] }
  yield {
    text: `update onceonly_run_signals set run_id = ? where run_id = ? and not ${isTaken}`,
    values: [id, runId, JSON.stringify(taken.map((each) => ({ id: each })))],
  }
  yield {
    text: `insert into onceonly_run_attributes (run_id, name, value)
      select ${dialect.place('text')}, name, value from onceonly_run_attributes where run_id = ?`,
    values: [id, runId],
  }
  // A schedule waits for the end of the last of them.
  yield { text: 'update onceonly_run_schedules set last_run = ? where last_run = ?', values: [id, runId] }
}

/**
 * The place in a queue goes with it, in the transaction that ends the run before it, so that no moment is in between: it is
 * the same admission, which the rate counts once.
 */
function* keepPlace(runId: string, id: string): Script<void> {
  const names = ['queue', 'queue_key', 'dedup_key', 'priority', 'place', 'ready_at', 'admitted_at']
  yield {
    text: `update onceonly_runs set ${names.map((name) => `${name} = o.${name}`).join(', ')}
      from (select ${names.join(', ')} from onceonly_runs where id = ?) as o where id = ?`,
    values: [runId, id],
  }
}

function* startUnder(runId: string, row: RunRow, start: (row: RunRow) => Statement): Script<string> {
  for (let id = row.id, tries = 1; tries <= TRIES; id = `${id}+`, tries++) {
    if ((yield start({ ...row, id })).length > 0) return id
  }
  throw new RunError('run_conflict', `The run ${runId} cannot continue: there is another run ${row.id}.`)
}
