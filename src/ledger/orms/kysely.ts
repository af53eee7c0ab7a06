import type { OrmTransactions } from '../store/orm.ts'
import { checkHandle, classOf, databaseOf, refuseTransaction } from './check.ts'
import { queryByKysely } from './kysely-query.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `Kysely` instance on PostgreSQL or SQLite. */
export interface KyselyDatabase {
  readonly isTransaction: boolean
  transaction(): {
    setIsolationLevel(level: 'read committed'): {
      // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
      execute<T>(work: (trx: any) => Promise<T>): Promise<T>
    }
  }
}

/** The `Transaction<DB>` of a `Kysely<DB>`. */
export type KyselyTransaction<Db extends KyselyDatabase> = Parameters<
  Parameters<ReturnType<ReturnType<Db['transaction']>['setIsolationLevel']>['execute']>[0]
>[0]

/**
 * Runs `transaction` operations in transactions of Kysely: the `tx` of an effect is a `Transaction<DB>`, with your
 * plugins.
 *
 * @param db your `Kysely` on the database of the store
 * @example
 * ```ts
 * import { Kysely, PostgresDialect } from 'kysely'
 * import { createLedger } from 'onceonly'
 * import { kysely } from 'onceonly/kysely'
 * import { postgresStore } from 'onceonly/postgres'
 * import { Pool } from 'pg'
 *
 * interface Tables {
 *   orders: { item: string }
 * }
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL })
 * const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
 * const once = createLedger({ store: postgresStore(pool), transactions: kysely(db) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await tx.insertInto('orders').values({ item: 'lamp' }).execute()
 * })
 * ```
 */
export function kysely<Db extends KyselyDatabase>(db: Db): OrmTransactions<KyselyTransaction<Db>> {
  const expected = { with: ['transaction', 'withoutPlugins'], wants: 'a `Kysely` instance' }
  checkHandle('kysely', db, expected)
  refuseTransaction('kysely', db.isTransaction, expected)
  const { getExecutor } = db as { getExecutor?: () => { readonly adapter?: unknown } }
  return {
    name: 'kysely',
    dialect: databaseOf('kysely', classOf(getExecutor?.call(db).adapter)),
    // On SQLite Kysely leaves the level out.
    open: (work) => db.transaction().setIsolationLevel('read committed').execute(work),
    query: queryByKysely,
    isTransaction: (handle) => (handle as Partial<KyselyDatabase> | null)?.isTransaction === true,
  }
}
