import { limits } from '../core/limits.ts'
import type { SqlStore } from './port.ts'
import type { Migration, SqlTx } from './sql.ts'

/** The tables that a wing keeps in a store. */
export interface WingTables {
  readonly state: 'missing' | 'preparing' | 'ready'
  /** Brings them up to date, once for all callers; a store that was away is asked again by the next caller. */
  prepare(): Promise<void>
  /** A transaction of the wing's own, once the tables are there. */
  inTransaction<T>(work: (tx: SqlTx) => Promise<T>): Promise<T>
}

/** For a wing's own short transactions: they wait no longer for a lock than a store call may take. */
const CALL = { timeoutMs: limits.storeCallMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }

/** A transaction of a wing's own, on tables that are known to be there. */
export function ownTransaction<T>(
  { transactions }: Pick<SqlStore, 'transactions'>,
  work: (tx: SqlTx) => Promise<T>,
): Promise<T> {
  return transactions.run(({ tx }) => work(tx), CALL)
}

export function createWingTables(
  store: Pick<SqlStore, 'sql' | 'transactions'>,
  room: string,
  migrations: readonly Migration[],
): WingTables {
  let state: WingTables['state'] = 'missing'
  let preparing: Promise<void> | null = null

  async function migrate(): Promise<void> {
    state = 'preparing'
    try {
      await store.sql.migrate(room, migrations)
      state = 'ready'
    } catch (error) {
      state = 'missing'
      preparing = null
      throw error
    }
  }

  const prepare = () => (preparing ??= migrate())
  return {
    get state() {
      return state
    },
    prepare,
    async inTransaction(work) {
      await prepare()
      return ownTransaction(store, work)
    },
  }
}
