import type { OrmTransactions } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle } from './check.ts'

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
    query(text: string, values: unknown[], structured: true): Promise<{ readonly records?: readonly SqlRow[] }>
  }
}

/**
 * Runs `transaction` operations in transactions of TypeORM: the `tx` of an effect is the `EntityManager` of
 * `dataSource.transaction`.
 *
 * @param dataSource your initialised `DataSource` on the database of the store
 * @example
 * const dataSource = await new DataSource({ type: 'postgres', url: process.env.DATABASE_URL }).initialize()
 * const once = createLedger({ store: postgresStore(pool), transactions: typeorm(dataSource) })
 */
export function typeorm<Db extends TypeOrmDatabase>(dataSource: Db): OrmTransactions<TypeOrmTransaction<Db>> {
  checkHandle('typeorm', dataSource, { with: ['transaction', 'createQueryRunner'], wants: 'a `DataSource`' })
  return {
    name: 'typeorm',
    dialect: 'postgres',
    hooksBeforeCommit: true,
    open: (work) => dataSource.transaction('READ COMMITTED', work),
    query: async ({ queryRunner }: Sender, text, values) => {
      if (queryRunner === undefined) throw new Error('This EntityManager has no transaction.')
      return (await queryRunner.query(text, [...values], true)).records ?? []
    },
    isTransaction: (handle) => (handle as Sender | null | undefined)?.queryRunner?.isTransactionActive === true,
  }
}
