import type { OrmTransactions } from '../store/orm.ts'
import { checkHandle, refuseOtherDatabase, refuseTransaction } from './check.ts'
import { isKnexTransaction, queryByKnex } from './knex-query.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `Knex` instance on PostgreSQL. */
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
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL })
 * const db = Knex({ client: 'pg', connection: process.env.DATABASE_URL })
 * const once = createLedger({ store: postgresStore(pool), transactions: knex(db) })
 */
export function knex<Db extends KnexDatabase>(db: Db): OrmTransactions<KnexTransaction<Db>> {
  const expected = { with: ['transaction', 'raw'], wants: 'a `Knex` instance' }
  checkHandle('knex', db, expected)
  refuseTransaction('knex', isKnexTransaction(db), expected)
  refuseOtherDatabase('knex', (db as { readonly client?: { readonly dialect?: unknown } }).client?.dialect)
  return {
    name: 'knex',
    dialect: 'postgres',
    open: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    query: queryByKnex,
    isTransaction: isKnexTransaction,
  }
}
