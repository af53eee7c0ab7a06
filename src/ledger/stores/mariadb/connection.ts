import type { Deadline } from '../../store/deadline.ts'
import type { StoredRow } from '../../store/sql/tables.ts'
import type { SqlValue } from '../../store/sql.ts'
import type { MariadbConnection, MariadbPool } from './driver.ts'
import { connectError, timeoutError } from './errors.ts'

/** A connection of the pool while the store holds it. Once broken it answers nothing more, and the pool closes it. */
export interface Connection {
  readonly broken: Error | null
  /** True while a statement is under way. */
  readonly waiting: boolean
  /** The rows of one statement, or none where it gives none. */
  query(text: string, values?: readonly SqlValue[]): Promise<readonly StoredRow[]>
  /** Ends it now. What is under way rejects with the reason at once. */
  destroy(reason: Error): void
  release(): void
}

function createConnection(driver: MariadbConnection): Connection {
  const underWay = new Set<(reason: Error) => void>()
  let broken: Error | null = null
  let returned = false

  function destroy(reason: Error): void {
    if (returned) return
    returned = true
    broken = reason
    for (const reject of underWay) reject(reason)
    underWay.clear()
    // The listener stays: a closing socket may still report an error, which would be unhandled without it.
    driver.destroy()
  }

  driver.on('error', destroy)
  return {
    get broken() {
      return broken
    },
    get waiting() {
      return underWay.size > 0
    },
    query: (sql, values = []) => {
      if (broken !== null) return Promise.reject(broken)
      return new Promise((resolve, reject) => {
        underWay.add(reject)
        const sent = driver.query({ sql, bigIntAsNumber: true, insertIdAsNumber: true }, values.map(bindable))
        sent.then(
          (result) => {
            underWay.delete(reject)
            resolve(Array.isArray(result) ? (result as readonly StoredRow[]) : [])
          },
          (error: unknown) => {
            underWay.delete(reject)
            reject(error as Error)
          },
        )
      })
    },
    destroy,
    release: () => {
      if (returned) return
      returned = true
      driver.removeListener('error', destroy)
      // The driver rolls back what is open; a connection that cannot is closed by it.
      driver.release().catch(() => undefined)
    },
  }
}

/** The driver knows bytes as a `Buffer` only. */
function bindable(value: SqlValue): SqlValue {
  return value instanceof Uint8Array && !Buffer.isBuffer(value) ? Buffer.from(value) : value
}

/** A connection of the pool, in time. One that arrives after its caller gave up goes straight back. */
export function borrow(pool: MariadbPool, deadline: Deadline): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let late = false
    const off = deadline.onPassed(() => {
      late = true
      reject(timeoutError(deadline.timeoutMs, 'no'))
    })
    pool.getConnection().then(
      (driver) => {
        off()
        if (late) void driver.release().catch(() => undefined)
        else resolve(createConnection(driver))
      },
      (error: unknown) => {
        off()
        reject(connectError(error))
      },
    )
  })
}

/** Runs the work in a transaction of ours. A connection that cannot even roll back is closed, which does the same. */
export async function inTransaction<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED')
  await connection.query('START TRANSACTION')
  let result: T
  try {
    result = await work()
  } catch (error) {
    await rollBack(connection)
    throw error
  }
  await connection.query('COMMIT')
  return result
}

export async function rollBack(connection: Connection): Promise<void> {
  await connection.query('ROLLBACK').catch((error: unknown) => connection.destroy(error as Error))
}
