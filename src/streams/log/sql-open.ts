import { limits } from '../../ledger/core/limits.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { STREAM_ROOM, streamTables } from './sql-tables.ts'

const TRANSACTION = { timeoutMs: limits.storeCallMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }

/** The tables of streams in a store: logs, the final order, and the places of clients. */
export interface StreamTables {
  /** They are created on first use; after an error the next use tries again. */
  ready(): Promise<void>
  inTransaction<T>(work: (tx: SqlTx) => Promise<T>): Promise<T>
}

export function openStreamTables({ sql, transactions }: SqlStore): StreamTables {
  let migrated: Promise<void> | null = null

  function ready(): Promise<void> {
    migrated ??= sql.migrate(STREAM_ROOM, streamTables).catch((error: unknown) => {
      migrated = null
      throw error
    })
    return migrated
  }

  return {
    ready,
    async inTransaction(work) {
      await ready()
      return transactions.run(({ tx }) => work(tx), TRANSACTION)
    },
  }
}
