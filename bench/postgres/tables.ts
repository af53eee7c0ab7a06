import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'

/** The very tables that our store makes, empty, so that both sides write the same columns into the same indexes. */
export async function createTables(pool: Pool): Promise<void> {
  const store = postgresStore(pool)
  const ledger = createLedger({ store, background: false })
  const operation = ledger.operation({ name: 'bench.open', effect: 'repeatable' })
  await operation.run({ tenant: 'acme', caller: 'checkout', key: 'open' }, null, () => null)
  await ledger.stop()
  await store.stop()
  await pool.query('TRUNCATE onceonly_records')
}
