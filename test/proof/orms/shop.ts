import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Ledger, SqlStore, TransactionalOperation } from 'onceonly'
import { createLedger } from 'onceonly'
import type { Outbox } from 'onceonly/outbox'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import type { Pool } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { atEnd, databaseUrl, freshPool } from '../../support/stores/postgres/store.ts'
import type { Connections, OpenedOrm, OrmRow } from './app/row.ts'
import { usual } from './app/row.ts'

/** An application: one ORM, one store on the same database, one ledger. */
export interface Shop {
  readonly url: string
  readonly orm: OpenedOrm<unknown>
  readonly store: SqlStore
  readonly ledger: Ledger<unknown>
  readonly outbox: Outbox<unknown>
  readonly place: TransactionalOperation<string, unknown>
  orders(like: string): Promise<string[]>
  stateOf(key: string): Promise<string | undefined>
  /** How many messages the outbox has under a key. */
  messages(key: string): Promise<number>
  /** Until a transaction of this shop waits for that of another. */
  untilBlocked(): Promise<void>
}

export interface ServerShop extends Shop {
  readonly pool: Pool
}

const TABLE = 'CREATE TABLE IF NOT EXISTS orders (name text PRIMARY KEY)'
export const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })

export interface ShopOptions {
  readonly whileRunning?: 'conflict'
  readonly schema?: string
  /** On the database of this one. */
  readonly beside?: Shop
  /** Of the ORM; the store has as many of its own. */
  readonly connections?: Connections
  /** The URL of a pooler, in front of the server for both. */
  readonly pooler?: string
}

type Rows = (text: string, value: string) => Promise<readonly Record<string, unknown>[]>

export async function openShop(t: TestContext, row: OrmRow, options: ShopOptions = {}): Promise<Shop> {
  return row.sqlite === undefined ? openServerShop(t, row, options) : openFileShop(t, row, options)
}

export async function openServerShop(t: TestContext, row: OrmRow, options: ShopOptions = {}): Promise<ServerShop> {
  const { schema, pooler, connections = usual } = options
  const url = pooler === undefined ? await databaseUrl() : new URL(new URL(await databaseUrl()).pathname, pooler).href
  const pool = await freshPool(t, { connectionString: url, max: connections.max })
  await pool.query(TABLE)
  const store = postgresStore(pool, schema === undefined ? {} : { schema })
  atEnd(t, () => store.stop())
  const orm = await row.open(url, connections)
  atEnd(t, () => orm.close())
  const rows: Rows = async (text, value) => (await pool.query(text.replace('?', '$1'), [value])).rows
  const shop = await openOn(t, { url, orm, store }, options, rows)
  return { ...shop, pool, untilBlocked: () => untilBlocked(pool) }
}

async function openFileShop(t: TestContext, row: OrmRow, options: ShopOptions): Promise<Shop> {
  const url = options.beside?.url ?? freshFile(t)
  const store = sqliteStore(url, row.sqlite)
  atEnd(t, () => store.stop())
  await store.sql.query(TABLE)
  const opened = await row.open(url)
  atEnd(t, () => opened.close())
  let refused = 0
  const transactions: typeof opened.transactions = {
    ...opened.transactions,
    query: (handle, text, values) =>
      opened.transactions.query(handle, text, values).catch((error: unknown) => {
        refused += 1
        throw error
      }),
  }
  const rows: Rows = (text, value) => store.sql.query(text, [value])
  const shop = await openOn(t, { url, orm: { ...opened, transactions }, store }, options, rows)
  return { ...shop, untilBlocked: async () => void (await until('a twin waits', () => Promise.resolve(refused > 0))) }
}

export function freshFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-orm-'))
  atEnd(t, async () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'shop.db')
}

async function openOn(
  t: TestContext,
  { url, orm, store }: Pick<Shop, 'url' | 'orm' | 'store'>,
  { schema, whileRunning }: ShopOptions,
  rows: Rows,
): Promise<Omit<Shop, 'untilBlocked'>> {
  const { transactions } = orm
  const ledger = createLedger({ store, transactions, background: false })
  const outbox = createOutbox({ ledger })
  await outbox.prepare()
  atEnd(t, () => ledger.stop())
  const place = ledger.operation<string>({
    name: 'order.place',
    effect: 'transaction',
    ...(whileRunning === undefined ? {} : { whileRunning }),
  })
  const prefix = schema === undefined ? '' : `${schema}.`
  return {
    url,
    orm,
    store,
    ledger,
    outbox,
    place,
    orders: async (like) =>
      (await rows('SELECT name FROM orders WHERE name LIKE ? ORDER BY name', `${like}%`)).map(({ name }) => `${name}`),
    stateOf: async (key) => {
      const [found] = await rows(`SELECT status AS state FROM ${prefix}onceonly_records_view WHERE key = ?`, key)
      return found === undefined ? undefined : `${found['state']}`
    },
    messages: async (key) => (await rows('SELECT 1 FROM onceonly_outbox_rows WHERE key = ?', key)).length,
  }
}

/** Until a session of this database waits for a row of another. */
async function untilBlocked(pool: Pool): Promise<void> {
  await until('a twin waits', async () => {
    const text = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    return (await pool.query(text)).rows.length > 0
  })
}
