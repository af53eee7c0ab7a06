import { StreamError } from './errors.ts'
import {
  browserIndexedDb,
  committed,
  type IndexedDb,
  type IndexedDbDatabase,
  openDatabase,
  PLACE_PREFIX,
} from './indexeddb.ts'
import { createShelfPlace, type KeptPlace } from './place-on-shelf.ts'
import { applyChanges, type Shelf } from './place-shelf.ts'
import { createClientRuntime } from './runtime.ts'

export interface IndexedDbPlaceOptions {
  /** The name of the database; one for each client. */
  readonly name: string
  /** Left out: the browser's own. @default the browser's own */
  readonly indexedDB?: IndexedDb
}

const STORE = 'kept'
/** The name under which the last opener stands. */
const OPENER = 'opener'

/**
 * One database for each client. Tabs of a site share their databases, so the name must be the tab's own; `holdPlace`
 * distinguishes a duplicated tab from its original. When two tabs open one database all the same, the last one owns it:
 * every write of the other is refused with `place_taken`, so that their pending messages never mix.
 *
 * @example
 * ```ts
 * import { createIndexedDbPlace } from 'onceonly/stream'
 *
 * export const place = createIndexedDbPlace({ name: 'chat-tab-1' })
 * ```
 */
export function createIndexedDbPlace(options: IndexedDbPlaceOptions): KeptPlace {
  return createShelfPlace(createIndexedDbShelf(options))
}

function createIndexedDbShelf(options: IndexedDbPlaceOptions): Shelf {
  const { name, indexedDB = browserIndexedDb() } = options
  const opener = createClientRuntime().newId()
  let opened: Promise<IndexedDbDatabase> | null = null

  function ready(): Promise<IndexedDbDatabase> {
    opened ??= openDatabase(indexedDB, PLACE_PREFIX + name, STORE)
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
        throw taken ? placeTaken(name) : error
      })
    },
    async stop() {
      const database = await opened?.catch(() => null)
      database?.close()
    },
  }
}

function placeTaken(name: string): StreamError {
  return new StreamError('place_taken', `The place ${name} was opened by another tab.`, { details: { place: name } })
}
