import { OnceError } from '../core/errors.ts'
import type { OrmTransactions } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle, refuseOtherDatabase } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a TypeORM `DataSource` on PostgreSQL. */
export interface TypeOrmDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  readonly manager: any
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  transaction<T>(isolation: 'READ COMMITTED', work: (manager: any) => Promise<T>): Promise<T>
}

/** The `EntityManager` of a data source. */
export type TypeOrmTransaction<Db extends TypeOrmDatabase> = Db['manager']

interface Sender {
  readonly queryRunner?: {
    readonly isTransactionActive: boolean
    release(): Promise<void>
    query(text: string, values: unknown[], structured: true): Promise<{ readonly records?: readonly SqlRow[] }>
  }
}

/**
 * A connection that is released inside of its transaction goes back to the pool with the transaction open: the next
 * borrower would write into it.
 */
async function keptOpen<T>({ queryRunner }: Sender, work: () => Promise<T>): Promise<T> {
  if (queryRunner === undefined) return await work()
  const { release } = queryRunner
  queryRunner.release = () => {
    const text =
      '`tx.queryRunner.release()` was called inside of an effect. TypeORM releases it when the effect has ended.'
    return Promise.reject(new OnceError('bad_option', text))
  }
  try {
    return await work()
  } finally {
    queryRunner.release = release
  }
}

/**
 * Runs `transaction` operations in transactions of TypeORM: the `tx` of an effect is the `EntityManager` of
 * `dataSource.transaction`.
 *
 * @param dataSource your initialised `DataSource` on the database of the store
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { postgresStore } from 'onceonly/postgres'
 * import { typeorm } from 'onceonly/typeorm'
 * import { Pool } from 'pg'
 * import { DataSource } from 'typeorm'
 *
 * const url = process.env.DATABASE_URL ?? ''
 * const dataSource = await new DataSource({ type: 'postgres', url }).initialize()
 * const store = postgresStore(new Pool({ connectionString: url }))
 * const once = createLedger({ store, transactions: typeorm(dataSource) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await tx.query('insert into orders (item) values ($1)', ['lamp'])
 * })
 * ```
 */
export function typeorm<Db extends TypeOrmDatabase>(dataSource: Db): OrmTransactions<TypeOrmTransaction<Db>> {
  checkHandle('typeorm', dataSource, { with: ['transaction', 'createQueryRunner'], wants: 'a `DataSource`' })
  refuseOtherDatabase('typeorm', (dataSource as { readonly options?: { readonly type?: unknown } }).options?.type)
  return {
    name: 'typeorm',
    dialect: 'postgres',
    hooksBeforeCommit: true,
    open: (work) => dataSource.transaction('READ COMMITTED', (manager) => keptOpen(manager, () => work(manager))),
    query: async ({ queryRunner }: Sender, text, values) => {
      if (queryRunner === undefined) throw new Error('This EntityManager has no transaction.')
      return (await queryRunner.query(text, [...values], true)).records ?? []
    },
    isTransaction: (handle) => (handle as Sender | null | undefined)?.queryRunner?.isTransactionActive === true,
  }
}
