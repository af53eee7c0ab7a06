import { OnceError } from '../../ledger/core/errors.ts'
import { checkSqlStore } from '../../ledger/sql-store.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { createClientStorage, type OpenClientStorage } from '../client/client-storage.ts'
import { StreamError } from '../client/errors.ts'
import type { Changes, KeyValues } from '../client/key-values.ts'
import { createClientRuntime } from '../client/runtime.ts'
import { openStreamTables } from './sql-open.ts'

/** Storage in the store that the receiver writes to. */
export interface SqlStorage extends OpenClientStorage {
  /** While a receiver runs with `effectively-once`: what it writes here commits with its position, or not at all. */
  readonly tx: SqlTx
}

export interface SqlStorageOptions {
  /** The store that the receiver writes to. */
  readonly store: SqlStore
  /**
   * One for each client. Where two open one name, the last has it: writes of the other are refused with `storage_taken`.
   */
  readonly name: string
}

/** The name under which the last opener stands. */
const OPENER = 'opener'

/**
 * For clients that live beside a store: a crash in the middle of a receiver leaves neither its writes nor its position.
 *
 * @example
 * ```ts
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
 * import { createSqlStorage } from 'onceonly/stream/server'
 *
 * const storage = createSqlStorage({ store: sqliteStore('bot.db'), name: 'bot' })
 * const client = await createStreamClient({
 *   room: 'lobby',
 *   regions: ['eu'],
 *   transport: createWebSocketTransport({ url: () => 'wss://eu.example.com/socket' }),
 *   receiver: { message: async ({ body }) => void (await storage.tx.query('insert into seen values (?)', [String(body)])) },
 *   mode: 'effectively-once',
 *   storage,
 * })
 * ```
 */
export function createSqlStorage({ store, name: storageName }: SqlStorageOptions): SqlStorage {
  checkSqlStore('createSqlStorage', store)
  const { inTransaction } = openStreamTables(store)
  const opener = createClientRuntime().newId()
  // Held until the transaction ends, so that the next process that opens the storage finds all earlier writes.
  const holdRow = store.sql.dialect.lock('for update')
  let current: SqlTx | null = null

  async function put(tx: SqlTx, changes: Changes): Promise<void> {
    const text = `select value from onceonly_stream_storage where client = ? and name = ? ${holdRow}`
    const [row] = await tx.query<{ value: string }>(text, [storageName, OPENER])
    if (row?.value !== JSON.stringify(opener)) throw storageTaken(storageName)
    await change(tx, changes)
  }

  async function change(tx: SqlTx, { put: values = {}, remove = [] }: Changes): Promise<void> {
    for (const name of remove) {
      await tx.query('delete from onceonly_stream_storage where client = ? and name = ?', [storageName, name])
    }
    for (const [name, value] of Object.entries(values)) {
      await tx.query(
        `insert into onceonly_stream_storage (client, name, value) values (?, ?, ?)
          on conflict (client, name) do update set value = excluded.value`,
        [storageName, name, store.sql.secret(JSON.stringify(value))],
      )
    }
  }

  const values: KeyValues = {
    load: () =>
      inTransaction(async (tx) => {
        await change(tx, { put: { [OPENER]: opener } })
        const text = 'select name, value from onceonly_stream_storage where client = ?'
        const rows = await tx.query<{ name: string; value: string }>(text, [storageName])
        return new Map(rows.map(({ name, value }) => [name, JSON.parse(value) as unknown]))
      }),
    write: (changes) => inTransaction((tx) => put(tx, changes)),
    atomically: (work) =>
      inTransaction(async (tx) => {
        current = tx
        try {
          await work((changes) => put(tx, changes))
        } finally {
          current = null
        }
      }),
    stop: async () => {},
  }

  return {
    ...createClientStorage(values),
    get tx() {
      if (current === null) throw new OnceError('bad_option', 'There is a transaction only while a receiver runs.')
      return current
    },
  }
}

function storageTaken(name: string): OnceError {
  return new StreamError('storage_taken', `The storage ${name} was opened by another client.`, {
    details: { storage: name },
  })
}
