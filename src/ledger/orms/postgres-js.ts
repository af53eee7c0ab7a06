import type { OrmTransactions } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of the `sql` of postgres.js. */
export interface PostgresJsDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  begin(options: string, work: (sql: any) => unknown): Promise<unknown>
}

/** The `TransactionSql` of an instance. */
export type PostgresJsTransaction<Db extends PostgresJsDatabase> = Parameters<Parameters<Db['begin']>[1]>[0]

interface Sender {
  savepoint(work: (sql: never) => Promise<unknown>): Promise<unknown>
  unsafe(text: string, values: unknown[]): Promise<Iterable<SqlRow>>
}

/**
 * Runs `transaction` operations in transactions of postgres.js: the `tx` of an effect is a `TransactionSql`.
 *
 * @param db your `sql` on the database of the store
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { postgresStore } from 'onceonly/postgres'
 * import { postgresJs } from 'onceonly/postgres-js'
 * import { Pool } from 'pg'
 * import postgres from 'postgres'
 *
 * const url = process.env.DATABASE_URL ?? ''
 * const store = postgresStore(new Pool({ connectionString: url }))
 * const once = createLedger({ store, transactions: postgresJs(postgres(url)) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   await tx`insert into orders ${tx({ item: 'lamp' })}`
 * })
 * ```
 */
export function postgresJs<Db extends PostgresJsDatabase>(db: Db): OrmTransactions<PostgresJsTransaction<Db>> {
  checkHandle('postgresJs', db, { with: ['begin', 'unsafe'], wants: 'the `sql` of postgres.js' })
  return {
    name: 'postgresJs',
    dialect: 'postgres',
    open: async <T>(work: (sql: PostgresJsTransaction<Db>) => Promise<T>) =>
      // In an object: postgres.js waits for the elements of an array that its callback returns.
      (
        (await db.begin('isolation level read committed', async (sql) => ({ result: await work(sql) }))) as {
          result: T
        }
      ).result,
    // A failed statement ends the innermost scope of postgres.js, and the transaction where there is none.
    savepoint: async <T>(handle: Sender, work: (sql: PostgresJsTransaction<Db>) => Promise<T>) =>
      ((await handle.savepoint(async (sql) => ({ result: await work(sql) }))) as { result: T }).result,
    query: async (handle: Sender, text, values) => [...(await handle.unsafe(text, [...values]))],
    isTransaction: (handle) => typeof (handle as { savepoint?: unknown } | null | undefined)?.savepoint === 'function',
  }
}
