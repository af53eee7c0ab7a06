import type { Deadline } from '../../store/deadline.ts'
import type { PgClient, PgPool, PgQuery, PgResult } from './driver.ts'
import { connectError, timeoutError } from './errors.ts'
import { asText } from './statement.ts'

/**
 * A client while we hold it. Once broken it answers nothing more, and the pool closes it instead of lending it again.
 */
export interface Connection {
  readonly client: PgClient
  /** Why it broke, or null while it is good. */
  readonly broken: Error | null
  /** True while a statement is under way. */
  readonly waiting: boolean
  query(query: PgQuery, values?: unknown[]): Promise<PgResult>
  /** Several statements without values, in one round trip; values arrive as text. */
  script(text: string): Promise<readonly PgResult[]>
  /**
   * Ends it now. What is under way rejects with the reason at once, whether or not the driver ever hears from the
   * server.
   */
  destroy(reason: Error): void
  /** Calls `act` when it breaks; only for a client that is never given back in order. */
  whenBroken(act: () => void): void
  release(): void
}

function createConnection(client: PgClient): Connection {
  const underWay = new Set<(reason: Error) => void>()
  let noticed: (() => void) | null = null
  let broken: Error | null = null
  let returned = false

  function destroy(reason: Error): void {
    if (returned) return
    returned = true
    broken = reason
    for (const reject of underWay) reject(reason)
    underWay.clear()
    // Our listener stays: a closing socket may still report an error, which would be unhandled without it.
    client.release(reason)
    noticed?.()
  }

  function query(query: PgQuery, values?: unknown[]): Promise<PgResult> {
    if (broken !== null) return Promise.reject(broken)
    return new Promise((resolve, reject) => {
      underWay.add(reject)
      const over = () => underWay.delete(reject)
      const sent = values === undefined ? client.query(query) : client.query(query, values)
      sent.then(
        (result) => {
          over()
          resolve(result)
        },
        (error: unknown) => {
          over()
          reject(error as Error)
        },
      )
    })
  }

  // A client outside the pool crashes the process without an error listener.
  client.on('error', destroy)
  return {
    client,
    get broken() {
      return broken
    },
    get waiting() {
      return underWay.size > 0
    },
    query,
    script: async (text) => {
      const results: PgResult | readonly PgResult[] = await query({ text, types: asText })
      return isList(results) ? results : [results]
    },
    destroy,
    whenBroken: (act) => {
      noticed = act
      if (broken !== null) act()
    },
    release: () => {
      if (returned) return
      returned = true
      client.removeListener('error', destroy)
      client.release()
    },
  }
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value)
}

/** A client from the pool, in time. One that arrives after its caller gave up goes straight back. */
export function borrow(pool: PgPool, deadline: Deadline): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let late = false
    const off = deadline.onPassed(() => {
      late = true
      reject(timeoutError(deadline.timeoutMs, 'no'))
    })
    pool.connect().then(
      (client) => {
        off()
        if (late) client.release()
        else resolve(createConnection(client))
      },
      (error: unknown) => {
        off()
        reject(connectError(error))
      },
    )
  })
}

/** Runs the work in a transaction of ours. A connection that cannot even roll back is closed, which does the same. */
export async function inTransaction<T>(connection: Connection, begin: string, work: () => Promise<T>): Promise<T> {
  await connection.script(begin)
  let result: T
  try {
    result = await work()
  } catch (error) {
    await rollBack(connection)
    throw error
  }
  await connection.script('COMMIT')
  return result
}

export async function rollBack(connection: Connection): Promise<void> {
  await connection.script('ROLLBACK').catch((error: unknown) => connection.destroy(error as Error))
}
