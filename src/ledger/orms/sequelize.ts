import type { OrmTransactions } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle, refuseOtherDatabase } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `Sequelize` instance on PostgreSQL. */
export interface SequelizeDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  transaction(options?: any): Promise<any>
}

/** The `Transaction` of an instance. */
export type SequelizeTransaction<Db extends SequelizeDatabase> = Awaited<ReturnType<Db['transaction']>>

interface Opener<Handle> {
  transaction<T>(options: { isolationLevel: 'READ COMMITTED' }, work: (t: Handle) => Promise<T>): Promise<T>
  getDialect?(): unknown
}

interface Sender {
  /** How it ended; undefined while it is open. */
  readonly finished?: unknown
  readonly connection?: {
    query(query: { readonly text: string; readonly values: unknown[] }): Promise<{ readonly rows: readonly SqlRow[] }>
  }
}

function isOpen(handle: Sender | null | undefined): boolean {
  return typeof handle?.connection?.query === 'function' && handle.finished === undefined
}

/**
 * Runs `transaction` operations in transactions of Sequelize: the `tx` of an effect is a `Transaction`, which your calls take
 * as `{ transaction: tx }`.
 *
 * @param db your `Sequelize` on the database of the store
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { postgresStore } from 'onceonly/postgres'
 * import { sequelize } from 'onceonly/sequelize'
 * import { Pool } from 'pg'
 * import { DataTypes, Sequelize } from 'sequelize'
 *
 * const url = process.env.DATABASE_URL ?? ''
 * const db = new Sequelize(url)
 * const Order = db.define('order', { item: DataTypes.TEXT })
 * const store = postgresStore(new Pool({ connectionString: url }))
 * const once = createLedger({ store, transactions: sequelize(db) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await Order.create({ item: 'lamp' }, { transaction: tx })
 * })
 * ```
 */
export function sequelize<Db extends SequelizeDatabase>(db: Db): OrmTransactions<SequelizeTransaction<Db>> {
  checkHandle('sequelize', db, { with: ['transaction', 'query', 'define'], wants: 'a `Sequelize` instance' })
  const opener = db as unknown as Opener<SequelizeTransaction<Db>>
  refuseOtherDatabase('sequelize', opener.getDialect?.())
  return {
    name: 'sequelize',
    dialect: 'postgres',
    open: (work) => opener.transaction({ isolationLevel: 'READ COMMITTED' }, work),
    // On the driver's connection: Sequelize would look for replacements in our statements.
    query: async (handle: Sender, text, values) => {
      if (!isOpen(handle)) throw new Error('The transaction of Sequelize has ended.')
      return (await handle.connection?.query({ text, values: [...values] }))?.rows ?? []
    },
    isTransaction: (handle) => isOpen(handle as Sender | null | undefined),
  }
}
