import type { OrmTransactions } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle, refuseOtherDatabase, refuseTransaction } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `Knex` instance on PostgreSQL. */
export interface KnexDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  transaction<T>(work: (trx: any) => Promise<T>, config?: { isolationLevel?: 'read committed' }): Promise<T>
}

/** The `Knex.Transaction` of an instance. */
export type KnexTransaction<Db extends KnexDatabase> = Parameters<Parameters<Db['transaction']>[0]>[0]

/** What is used of a transaction. */
export interface KnexSender {
  readonly isTransaction?: boolean
  isCompleted(): boolean
  readonly client: { acquireConnection(): Promise<KnexConnection> }
}

interface KnexConnection {
  query(query: { readonly text: string; readonly values: unknown[] }): Promise<{ readonly rows: readonly SqlRow[] }>
}

/**
 * On the driver's connection, so that `postProcessResponse` and `wrapIdentifier` touch neither our statements nor their
 * rows. A transaction that is complete has given its connection back.
 */
export async function queryByKnex(
  handle: KnexSender,
  text: string,
  values: readonly unknown[],
): Promise<readonly SqlRow[]> {
  if (handle.isCompleted()) throw new Error('The Knex transaction is complete.')
  const connection = await handle.client.acquireConnection()
  return (await connection.query({ text, values: [...values] })).rows
}

/** Whether it is an open transaction of Knex. */
export function isKnexTransaction(handle: unknown): boolean {
  const given = handle as Partial<KnexSender> | null | undefined
  return given?.isTransaction === true && given.isCompleted?.() === false
}

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
