import { limits } from '../../core/limits.ts'
import { inTransaction } from '../../store/sql/connection.ts'
import type { Lanes as LanesOf } from '../../store/sql/lanes.ts'
import { createLanes as createLanesOf } from '../../store/sql/lanes.ts'
import type { Clients } from './clients.ts'
import type { Connection } from './connection.ts'
import type { PgResult } from './driver.ts'
import { errors } from './errors.ts'
import type { Names } from './names.ts'
import { findOwnTables, quoteText } from './names.ts'
import type { Executor, TextRow } from './statement.ts'
import { inlined, plannedOn, preparedOn } from './statement.ts'

/** A connection with the settings of batches, for as long as a batch or a hot statement needs it. */
export interface Lane {
  readonly connection: Connection
  /** Single statements; each commits by itself. */
  readonly on: Executor
  /** A statement of a room, with values as the driver reads them. */
  query(name: string, text: string, values: readonly unknown[]): Promise<PgResult | readonly PgResult[]>
  inTransaction<T>(work: (on: Executor) => Promise<T>): Promise<T>
}

export interface Lanes {
  use<T>(deadline: Parameters<LanesOf<Connection>['use']>[0], work: (lane: Lane) => Promise<T>): Promise<T>
  rest(): void
  stop(): void
}

/**
 * `UPDATE … FROM unnest` fell to a crawl as the table grew until these plans were ruled out: without statistics the
 * planner takes a hash join over the whole table. With them out of the way the plan that is kept is the one we want,
 * a nested loop over the primary key in the order of the ids, so nothing is gained by planning again.
 *
 * The time-outs bound how long a server keeps locks for a process that was killed or paused.
 */
const SETTINGS = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  lock_timeout: String(limits.batchLockMs),
  statement_timeout: String(limits.storeCallMs),
  idle_in_transaction_session_timeout: String(limits.storeCallMs),
}

function settingsFor(names: Names, within: 'transaction' | 'session'): string {
  const local = within === 'transaction'
  const calls = Object.entries(SETTINGS).map(([name, value]) => `set_config('${name}', ${quoteText(value)}, ${local})`)
  return `SELECT ${calls.join(', ')};${findOwnTables(names, within)}`
}

const READ_COMMITTED = 'ISOLATION LEVEL READ COMMITTED, READ WRITE'

export function createLanes(clients: Clients, count: number, names: Names): Lanes {
  const kept = `SET default_transaction_isolation = 'read committed';${settingsFor(names, 'session')}`
  const local = settingsFor(names, 'transaction')
  const lanes = createLanesOf<Connection>({
    count,
    errors,
    borrow: clients.borrow,
    prepare: async (connection) => {
      if (clients.mode() === 'session') await connection.script(kept)
    },
    keeps: () => clients.mode() === 'session',
  })
  const laneOn = (connection: Connection) =>
    clients.mode() === 'session' ? keptLane(connection) : borrowedLane(connection, local)
  return { ...lanes, use: (deadline, work) => lanes.use(deadline, (connection) => work(laneOn(connection))) }
}

/** On a connection of ours: statements stay prepared, and the settings stay. */
function keptLane(connection: Connection): Lane {
  const on = preparedOn(connection)
  return {
    connection,
    on,
    query: (name, text, values) => connection.query({ name, text, values: [...values] }),
    inTransaction: (work) => inTransaction(connection, 'BEGIN', () => work(on)),
  }
}

/**
 * On a connection that is given back: the settings and the statement travel in one message, which is a transaction of its
 * own at the server, so that nothing outlives it and it costs one round trip.
 */
function borrowedLane(connection: Connection, local: string): Lane {
  const begin = `BEGIN ${READ_COMMITTED}; ${local}`
  const transaction = <T>(work: (on: Executor) => Promise<T>) =>
    inTransaction(connection, begin, () => work(plannedOn(connection)))

  return {
    connection,
    on: {
      run: async (statement, values) => {
        const text = inlined(statement.text, values)
        if (text === null) return await transaction((on) => on.run(statement, values))
        const results = await connection.script(`SET TRANSACTION ${READ_COMMITTED}; ${local} ${text}`)
        return (results.at(-1)?.rows ?? []) as readonly TextRow[]
      },
    },
    query: async (_name, text, values) => {
      const whole = inlined(text, values)
      if (whole !== null)
        return await connection.query({ text: `SET TRANSACTION ${READ_COMMITTED}; ${local} ${whole}` })
      return await inTransaction(connection, begin, () => connection.query({ text, values: [...values] }))
    },
    inTransaction: transaction,
  }
}
