import type { Connection } from './connection.ts'
import { errors } from './errors.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import type { Executor, Statement } from './statement.ts'

/**
 * Wakes waiters in other processes after the change is committed. Never inside the transaction: a notification fails at the
 * commit when one listener was away for so long that the server's queue is full, and would take the outcome with it. It is
 * a hint; a waiter that misses it polls soon. It takes a lock that all notifiers of the server share, so it is sent only for
 * records with waiters.
 */
export interface Notify {
  (connection: Connection, on: Executor, ids: readonly string[]): Promise<void>
}

export function createNotify(names: Names): Notify {
  const statement: Statement = {
    name: 'onceonly_notify',
    text: `SELECT pg_notify(${quoteText(names.channel)}, woken.id) FROM unnest($1::text[]) AS woken(id)`,
  }
  return async (connection, on, ids) => {
    if (ids.length === 0) return
    try {
      await on.run(statement, [ids])
    } catch (error) {
      if (!errors.leavesConnectionUsable(error)) connection.destroy(error as Error)
    }
  }
}
