import type { OrmTransactions, OrmValue } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle, classOf, refuseOtherDatabase, refuseTransaction } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a Drizzle database on PostgreSQL, whatever its driver. */
export interface DrizzleDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  transaction<T>(work: (tx: any) => Promise<T>, config?: { isolationLevel?: 'read committed' }): Promise<T>
}

/** The transaction of a database, with its schema. */
export type DrizzleTransaction<Db extends DrizzleDatabase> = Parameters<Parameters<Db['transaction']>[0]>[0]

/** A statement as `execute` takes it: something that becomes text and values. */
interface Statement {
  getSQL(): { toQuery(): { sql: string; params: readonly OrmValue[]; typings: readonly 'none'[] } }
}

interface Sender {
  transaction<T>(work: (tx: never) => Promise<T>): Promise<T>
  execute(statement: Statement): Promise<readonly SqlRow[] | { readonly rows: readonly SqlRow[] }>
}

function isDrizzleTransaction(handle: unknown): boolean {
  return typeof (handle as { rollback?: unknown } | null | undefined)?.rollback === 'function'
}

/**
 * Runs `transaction` operations in transactions of Drizzle: the `tx` of an effect is that of `db.transaction`.
 *
 * @param db your Drizzle database on the database of the store: `drizzle-orm/node-postgres` or `drizzle-orm/postgres-js`
 * @example
 * ```ts
 * import { drizzle as drizzleOn } from 'drizzle-orm/node-postgres'
 * import { pgTable, text } from 'drizzle-orm/pg-core'
 * import { createLedger } from 'onceonly'
 * import { drizzle } from 'onceonly/drizzle'
 * import { postgresStore } from 'onceonly/postgres'
 * import { Pool } from 'pg'
 *
 * const orders = pgTable('orders', { item: text('item').notNull() })
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL })
 * const once = createLedger({ store: postgresStore(pool), transactions: drizzle(drizzleOn(pool)) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await tx.insert(orders).values({ item: 'lamp' })
 * })
 * ```
 */
export function drizzle<Db extends DrizzleDatabase>(db: Db): OrmTransactions<DrizzleTransaction<Db>> {
  const expected = { with: ['transaction', 'execute'], wants: 'a Drizzle database' }
  refuseOtherDatabase('drizzle', classOf((db as { readonly dialect?: unknown } | undefined)?.dialect))
  checkHandle('drizzle', db, expected)
  refuseTransaction('drizzle', isDrizzleTransaction(db), expected)
  return {
    name: 'drizzle',
    dialect: 'postgres',
    open: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    // On postgres.js a failed statement ends the innermost scope, and the transaction where there is none.
    savepoint: (handle: Sender, work) => handle.transaction(work),
    query: async (handle: Sender, text, values) => {
      const query = { sql: text, params: values, typings: values.map(() => 'none' as const) }
      const result = await handle.execute({ getSQL: () => ({ toQuery: () => query }) })
      return 'rows' in result ? result.rows : [...result]
    },
    isTransaction: isDrizzleTransaction,
  }
}
