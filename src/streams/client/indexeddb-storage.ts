import { createClientStorage, type OpenClientStorage } from './client-storage.ts'
import { StreamError } from './errors.ts'
import {
  browserIndexedDb,
  committed,
  type IndexedDb,
  type IndexedDbDatabase,
  openDatabase,
  STORAGE_PREFIX,
} from './indexeddb.ts'
import { applyChanges, type KeyValues } from './key-values.ts'
import { createClientRuntime } from './runtime.ts'

export interface IndexedDbStorageOptions {
  /** The name of the database; one for each client. */
  readonly name: string
  /** Left out: the browser's own. @default the browser's own */
  readonly indexedDB?: IndexedDb
}

const STORE = 'kept'
/** The name under which the last opener stands. */
const OPENER = 'opener'

/**
 * One database for each client. Tabs of a site share their databases, so the name must be the tab's own; `holdStorage`
 * distinguishes a duplicated tab from its original. When two tabs open one database all the same, the last one owns it:
 * every write of the other is refused with `storage_taken`, so that their pending messages never mix.
 *
 * @example
 * ```ts
 * import { createIndexedDbStorage } from 'onceonly/stream'
 *
 * export const storage = createIndexedDbStorage({ name: 'chat-tab-1' })
 * ```
 */
export function createIndexedDbStorage(options: IndexedDbStorageOptions): OpenClientStorage {
  return createClientStorage(openIndexedDb(options))
}

function openIndexedDb(options: IndexedDbStorageOptions): KeyValues {
  const { name, indexedDB = browserIndexedDb() } = options
  const opener = createClientRuntime().newId()
  let opened: Promise<IndexedDbDatabase> | null = null

  function ready(): Promise<IndexedDbDatabase> {
    opened ??= openDatabase(indexedDB, STORAGE_PREFIX + name, STORE)
    return opened
  }

  return {
    async load() {
      const database = await ready()
      const transaction = database.transaction(STORE, 'readwrite')
      const store = transaction.objectStore(STORE)
      store.put(opener, OPENER)
      const keys = store.getAllKeys()
      const values = store.getAll()
      await committed(transaction)
      return new Map(keys.result.map((key, at) => [String(key), values.result[at]]))
    },
    async write(changes) {
      const database = await ready()
      // Strict: the browser must have given it to the disk, because the message leaves right after it.
      const transaction = database.transaction(STORE, 'readwrite', { durability: 'strict' })
      const store = transaction.objectStore(STORE)
      const last = store.get(OPENER)
      const wanted = new Map<string, unknown>()
      applyChanges(wanted, changes)
      let taken = false
      last.onsuccess = () => {
        taken = last.result !== opener
        if (taken) return transaction.abort()
        for (const key of changes.remove ?? []) store.delete(key)
        for (const [key, value] of wanted) store.put(value, key)
      }
      await committed(transaction).catch((error: unknown) => {
        throw taken ? storageTaken(name) : error
      })
    },
    async stop() {
      const database = await opened?.catch(() => null)
      database?.close()
    },
  }
}

function storageTaken(name: string): StreamError {
  return new StreamError('storage_taken', `The storage ${name} was opened by another tab.`, {
    details: { storage: name },
  })
}
