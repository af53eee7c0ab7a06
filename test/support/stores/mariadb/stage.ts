import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { MariadbConnection, MariadbPool, MariadbStore } from 'onceonly/mariadb'
import { mariadbStore } from 'onceonly/mariadb'
import type { TestDatabase } from './database.ts'
import { createDatabase } from './database.ts'

const url = process.env['ONCEONLY_TEST_MARIADB_URL']
if (url === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_MARIADB_URL is not set')

export interface Stage {
  readonly database: TestDatabase
  /** Without a pool, one of its own. */
  open(pool?: MariadbPool): MariadbStore
}

export function testMariadb(name: string, body: (stage: Stage, t: TestContext) => Promise<void>): void {
  test(name, { skip: url === undefined ? 'no MariaDB server' : false }, async (t) => {
    const database = await createDatabase(url ?? '')
    const stores: MariadbStore[] = []
    const open = (pool: MariadbPool = database.pool()) => {
      const store = mariadbStore(pool, { testClock: true })
      stores.push(store)
      return store
    }
    try {
      await body({ database, open }, t)
    } finally {
      for (const store of stores) await store.stop()
      await database.drop()
    }
  })
}

/** A statement on its way, and the connection that it takes. */
export interface Sent {
  readonly connection: MariadbConnection
  readonly sql: string
  readonly values: unknown[]
}

/** The same pool, with another way to send some statements. */
export function poolWith(
  pool: MariadbPool,
  send: (sent: Sent, pass: () => Promise<unknown>) => Promise<unknown>,
): MariadbPool {
  return {
    getConnection: async () => {
      const connection = await pool.getConnection()
      const query: MariadbConnection['query'] = (text, values = []) =>
        send({ connection, sql: text.sql, values }, () => connection.query(text, values))
      return {
        query,
        release: () => connection.release(),
        destroy: () => connection.destroy(),
        on: (event, listener) => connection.on(event, listener),
        removeListener: (event, listener) => connection.removeListener(event, listener),
      }
    },
  }
}
