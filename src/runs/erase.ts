import { encodeValue } from '../ledger/core/codec.ts'
import type { Script, SqlSeam } from '../ledger/store/sql.ts'
import { cancelOne, IS_LIVE } from './cancel.ts'
import { lockRuns } from './locks.ts'

/** What a run without content has in place of its definition. No definition can have this name. */
export const ERASED = '(erased)'

/**
 * What became of a run. `running` and `unknown` are left as they are: the outcome of what they did is still to be found out.
 * `empty` was erased before; `gone` is not there.
 */
export type ErasedRun = 'erased' | 'running' | 'unknown' | 'empty' | 'gone'

/** A worker has it, or had it when the worker ended: a step may have begun that its journal does not show. */
const IS_HELD = 'worker is not null or taken_at is not null or taken_before is not null'
const stepIs = (states: string) => `exists (select 1 from onceonly_run_steps s
  where s.run_id = onceonly_runs.id and s.state in (${states}))`
const UNDER_WAY = `(${IS_HELD} or ${stepIs("'intent', 'unknown'")})`

const CONTENT = ['onceonly_run_steps', 'onceonly_run_signals', 'onceonly_run_attributes']

function* stateOf(runId: string): Script<ErasedRun | 'ended' | 'at_rest'> {
  const [run] = yield {
    text: `select definition, case when ended_at is not null then 1 else 0 end as ended,
        case when ${UNDER_WAY} then 1 else 0 end as held,
        case when state = 'unknown' or ${stepIs("'unknown'")} then 1 else 0 end as doubtful
      from onceonly_runs where id = ?`,
    values: [runId],
  }
  if (run === undefined) return 'gone'
  if (run['definition'] === ERASED) return 'empty'
  const is = (name: string) => Number(run[name]) === 1
  if (is('ended')) return 'ended'
  if (is('doubtful')) return 'unknown'
  return is('held') ? 'running' : 'at_rest'
}

/** What `eraseOne` would do. */
export function* erasable(runId: string): Script<ErasedRun> {
  const state = yield* stateOf(runId)
  return state === 'ended' || state === 'at_rest' ? 'erased' : state
}

/**
 * Removes what a run was given and recorded, and ends one that only waits. Its row stays until its retention ends, so that
 * nothing is begun under its id, and none of its steps has its key again.
 */
export function* eraseOne(sql: SqlSeam, runId: string): Script<ErasedRun> {
  const children = yield {
    text: `select id from onceonly_runs where parent = ? and if_parent_ends = 'cancel' and ${IS_LIVE}`,
    values: [runId],
  }
  const [row] = yield { text: 'select parent from onceonly_runs where id = ?', values: [runId] }
  const parent = row?.['parent'] as string | null | undefined
  yield* lockRuns(sql, [
    runId,
    ...(typeof parent === 'string' ? [parent] : []),
    ...children.map(({ id }) => String(id)),
  ])
  // Not cancelled with it: one that is under way is left, too, and the others are erased by themselves.
  if (yield* cancelOne(sql, runId, `and not ${UNDER_WAY}`)) {
    yield {
      text: `update onceonly_runs set if_parent_ends = 'continue'
        where parent = ? and if_parent_ends = 'cancel' and ${IS_LIVE}`,
      values: [runId],
    }
  }
  const state = yield* stateOf(runId)
  // It has clean-ups, which a worker performs now.
  if (state === 'at_rest') return 'running'
  if (state !== 'ended') return state
  for (const table of CONTENT) yield { text: `delete from ${table} where run_id = ?`, values: [runId] }
  const empty = encodeValue(null)
  yield {
    text: `update onceonly_runs set definition = ?, input = ?, input_fingerprint = ?, result = null, failure = null,
      dedup_key = null where id = ?`,
    values: [ERASED, sql.secret('text' in empty ? empty.text : ''), sql.secret(''), runId],
  }
  return 'erased'
}
