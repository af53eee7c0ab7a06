import { limits } from '../../core/limits.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { PgPool } from './driver.ts'
import { stoppedError, storeError, timeoutError } from './errors.ts'
import type { Names } from './names.ts'
import { findOwnTables } from './names.ts'

/**
 * Connections of our own for the batches, taken from the pool when they are first needed and kept: their statements
 * stay prepared and their settings stay ours.
 */
export interface Lanes {
  /** Runs the work on a free lane. A lane that broke gets a new connection at its next use. */
  use<T>(deadline: Deadline, work: (connection: Connection) => Promise<T>): Promise<T>
  /** Closes the connections of free lanes. */
  rest(): void
  stop(): void
}

interface Lane {
  connection: Connection | null
}

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
  const free: Lane[] = Array.from({ length: count }, () => ({ connection: null }))
  const waiting: ((lane: Lane) => void)[] = []
  let stopped = false

  /** The lane that was free last, because its connection is the warmest; a lonely caller needs only one. */
  function take(deadline: Deadline): Lane | Promise<Lane> {
    const lane = free.pop()
    if (lane !== undefined) return lane
    return new Promise((resolve, reject) => {
      const off = deadline.onPassed(() => {
        waiting.splice(waiting.indexOf(given), 1)
        reject(timeoutError(deadline.timeoutMs, 'no'))
      })
      const given = (next: Lane) => {
        off()
        resolve(next)
      }
      waiting.push(given)
    })
  }

  function giveBack(lane: Lane): void {
    if (lane.connection?.broken !== null) lane.connection = null
    const next = waiting.shift()
    if (next !== undefined) next(lane)
    else free.push(lane)
  }

  async function open(deadline: Deadline): Promise<Connection> {
    const connection = await borrow(pool, deadline)
    const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, 'no')))
    try {
      await connection.script(settings)
      return connection
    } catch (error) {
      connection.destroy(error as Error)
      throw storeError(error, 'no')
    } finally {
      off()
    }
  }

  /** Closed rather than returned: others must not inherit these settings, and resetting could undo the user's. */
  function rest(): void {
    for (const lane of free) {
      lane.connection?.destroy(stoppedError())
      lane.connection = null
    }
  }

  return {
    use: async (deadline, work) => {
      if (stopped) throw stoppedError()
      const lane = await take(deadline)
      try {
        if (lane.connection === null || lane.connection.broken !== null) lane.connection = await open(deadline)
        const connection = lane.connection
        const off = deadline.onPassed(() => connection.destroy(timeoutError(deadline.timeoutMs, 'maybe')))
        try {
          return await work(connection)
        } finally {
          off()
        }
      } finally {
        giveBack(lane)
      }
    },
    rest,
    stop: () => {
      stopped = true
      rest()
    },
  }
}
