import type { OrmTransactions } from '../store/orm.ts'
import { checkHandle, databaseOf, refuseOtherDatabase, refuseTransaction } from './check.ts'
import { isKnexTransaction, queryByKnex } from './knex-query.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `Knex` instance on PostgreSQL, or on SQLite by `better-sqlite3`. */
export interface KnexDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  transaction<T>(work: (trx: any) => Promise<T>, config?: { isolationLevel?: 'read committed' }): Promise<T>
}

/** The `Knex.Transaction` of an instance. */
export type KnexTransaction<Db extends KnexDatabase> = Parameters<Parameters<Db['transaction']>[0]>[0]

/**
 * Runs `transaction` operations in transactions of Knex: the `tx` of an effect is a `Knex.Transaction`.
 *
 * @param db your `Knex` on the database of the store
 * @example
 * ```ts
 * import Knex from 'knex'
 * import { createLedger } from 'onceonly'
 * import { knex } from 'onceonly/knex'
 * import { postgresStore } from 'onceonly/postgres'
 * import { Pool } from 'pg'
 *
 * const connectionString = process.env.DATABASE_URL ?? ''
 * const db = Knex({ client: 'pg', connection: { connectionString } })
 * const once = createLedger({ store: postgresStore(new Pool({ connectionString })), transactions: knex(db) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await tx('orders').insert({ item: 'lamp' })
 * })
 * ```
 */
export function knex<Db extends KnexDatabase>(db: Db): OrmTransactions<KnexTransaction<Db>> {
  const expected = { with: ['transaction', 'raw'], wants: 'a `Knex` instance' }
  checkHandle('knex', db, expected)
  refuseTransaction('knex', isKnexTransaction(db), expected)
  const { client } = db as { readonly client?: { readonly dialect?: unknown; readonly driverName?: unknown } }
  // The driver `sqlite3` answers later, and no store can share it.
  if (client?.driverName === 'sqlite3') refuseOtherDatabase('knex', client.driverName)
  const dialect = databaseOf('knex', client?.dialect)
  return {
    name: 'knex',
    dialect,
    open: (work) => db.transaction(work, dialect === 'postgres' ? { isolationLevel: 'read committed' } : {}),
    query: queryByKnex,
    isTransaction: isKnexTransaction,
  }
}
