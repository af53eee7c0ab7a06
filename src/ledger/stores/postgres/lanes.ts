import { limits } from '../../core/limits.ts'
import type { Lanes as LanesOf } from '../../store/sql/lanes.ts'
import { createLanes as createLanesOf } from '../../store/sql/lanes.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { PgPool } from './driver.ts'
import * as errors from './errors.ts'
import type { Names } from './names.ts'
import { findOwnTables } from './names.ts'

export type Lanes = LanesOf<Connection>

/**
 * `UPDATE … FROM unnest` fell to a crawl as the table grew until these plans were ruled out: without statistics the
 * planner takes a hash join over the whole table. With them out of the way the plan that is kept is the one we want,
 * a nested loop over the primary key in the order of the ids, so nothing is gained by planning anew.
 *
 * The time-outs bound how long a server keeps locks for a process that was killed or paused.
 */
const SETTINGS = [
  'SET enable_seqscan = off',
  'SET enable_hashjoin = off',
  'SET enable_mergejoin = off',
  'SET jit = off',
  'SET plan_cache_mode = force_generic_plan',
  "SET default_transaction_isolation = 'read committed'",
  `SET lock_timeout = ${limits.batchLockMs}`,
  `SET statement_timeout = ${limits.storeCallMs}`,
  `SET idle_in_transaction_session_timeout = ${limits.storeCallMs}`,
].join(';')

export function createLanes(pool: PgPool, count: number, names: Names): Lanes {
  const settings = `${SETTINGS};${findOwnTables(names, 'session')}`
  return createLanesOf<Connection>({
    count,
    errors,
    borrow: (deadline) => borrow(pool, deadline),
    prepare: (connection) => connection.script(settings),
  })
}
