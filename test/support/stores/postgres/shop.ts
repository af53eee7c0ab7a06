import type { TestContext } from 'node:test'
import type { PoolConfig } from 'pg'
import type { Session } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore, PostgresTx } from '../../../../src/ledger/stores/postgres/index.ts'
import { freshPool, freshSchema, openStore } from './store.ts'

/** A business table beside the store's own, for the writes of effects. */
export const SHOP = [{ version: 1, oldestCode: 1, up: () => ['CREATE TABLE orders (name text PRIMARY KEY)'] }]

export async function shop(t: TestContext, schema = freshSchema(), pool: PoolConfig = {}): Promise<PostgresStore> {
  const store = await openStore(t, { schema }, await freshPool(t, pool))
  await store.sql.migrate('shop', SHOP)
  return store
}

export async function ordersIn(store: PostgresStore): Promise<string[]> {
  const rows = await store.sql.query<{ name: string }>('SELECT name FROM orders ORDER BY name')
  return rows.map(({ name }) => name)
}

export const order = (session: Session<PostgresTx>, name: string) =>
  session.tx.query('INSERT INTO orders VALUES (?)', [name])
