import type { TestContext } from 'node:test'
import type { Ledger, TransactionalOperation } from 'onceonly'
import { createLedger } from 'onceonly'
import type { Outbox } from 'onceonly/outbox'
import { createOutbox } from 'onceonly/outbox'
import type { PostgresStore } from 'onceonly/postgres'
import { postgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { atEnd, databaseUrl, freshPool } from '../../support/stores/postgres/store.ts'
import type { OpenedOrm, OrmRow } from './app/row.ts'

/** An application: one ORM, one store on the same database, one ledger. */
export interface Shop {
  readonly orm: OpenedOrm<unknown>
  readonly pool: Pool
  readonly store: PostgresStore
  readonly ledger: Ledger<unknown>
  readonly outbox: Outbox<unknown>
  readonly place: TransactionalOperation<string, unknown>
  orders(like: string): Promise<string[]>
  stateOf(key: string): Promise<string | undefined>
}

const TABLE = 'CREATE TABLE IF NOT EXISTS orders (name text PRIMARY KEY)'
export const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })

export interface ShopOptions {
  readonly whileRunning?: 'conflict'
  readonly schema?: string
}

export async function openShop(t: TestContext, row: OrmRow, options: ShopOptions = {}): Promise<Shop> {
  const { schema, ...definition } = options
  const url = await databaseUrl()
  const pool = await freshPool(t)
  await pool.query(TABLE)
  const store = postgresStore(pool, schema === undefined ? {} : { schema })
  atEnd(t, () => store.stop())
  const orm = await row.open(url)
  atEnd(t, () => orm.close())
  const { transactions } = orm
  const outbox = createOutbox({ store, transactions })
  await outbox.prepare()
  const ledger = createLedger({ store, transactions, outbox, background: false })
  atEnd(t, () => ledger.stop())
  const name = 'order.place'
  const place = ledger.operation<string>({ name, effect: 'transaction', ...definition })
  return {
    orm,
    pool,
    store,
    ledger,
    outbox,
    place,
    orders: async (like) => {
      const text = 'SELECT name FROM orders WHERE name LIKE $1 ORDER BY name'
      const { rows } = await pool.query<{ name: string }>(text, [`${like}%`])
      return rows.map((each) => each.name)
    },
    stateOf: async (key) => {
      const text = `SELECT status AS state FROM ${schema ?? 'public'}.onceonly_records_view WHERE key = $1`
      return (await pool.query<{ state: string }>(text, [key])).rows[0]?.state
    },
  }
}

/** Until a session of this database waits for a row of another. */
export async function untilBlocked(pool: Pool): Promise<void> {
  await until('a twin waits', async () => {
    const text = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    return (await pool.query(text)).rows.length > 0
  })
}
