import { createShelfPlace, type KeptPlace } from './place-on-shelf.ts'
import { applyChanges, type Shelf } from './place-shelf.ts'

/** What is used of the browser's `indexedDB`, so that the library needs no types of the DOM. */
export interface IndexedDb {
  open(name: string, version: number): IndexedDbOpening
}

export interface IndexedDbRequest<T> {
  readonly result: T
  readonly error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}

export interface IndexedDbOpening extends IndexedDbRequest<IndexedDbDatabase> {
  onupgradeneeded: (() => void) | null
  onblocked: (() => void) | null
}

export interface IndexedDbDatabase {
  createObjectStore(name: string): unknown
  transaction(store: string, mode: 'readonly' | 'readwrite', options?: { durability: 'strict' }): IndexedDbTransaction
  close(): void
}

export interface IndexedDbTransaction {
  readonly error: unknown
  oncomplete: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  objectStore(name: string): {
    put(value: unknown, key: string): unknown
    delete(key: string): unknown
    getAllKeys(): IndexedDbRequest<readonly unknown[]>
    getAll(): IndexedDbRequest<readonly unknown[]>
  }
}

export interface IndexedDbPlaceOptions {
  readonly name: string
  /** Left out: the browser's own. */
  readonly indexedDB?: IndexedDb
}

const STORE = 'kept'

/**
 * One database for each client. Tabs of a site share it, so the name must be the tab's own: keep it in `sessionStorage`,
 * and hold a lock of `navigator.locks` on it, because a duplicated tab copies it. Two tabs that share a name all the same
 * are told apart by the server, and one of them takes a new identity; what is pending then survives only one of them.
 */
export function createIndexedDbPlace(options: IndexedDbPlaceOptions): KeptPlace {
  return createShelfPlace(createIndexedDbShelf(options))
}

function createIndexedDbShelf(options: IndexedDbPlaceOptions): Shelf {
  const { name, indexedDB = (globalThis as unknown as { indexedDB: IndexedDb }).indexedDB } = options
  let opened: Promise<IndexedDbDatabase> | null = null

  function ready(): Promise<IndexedDbDatabase> {
    opened ??= new Promise((resolve, reject) => {
      const opening = indexedDB.open(`onceonly:${name}`, 1)
      opening.onupgradeneeded = () => void opening.result.createObjectStore(STORE)
      opening.onsuccess = () => resolve(opening.result)
      opening.onerror = () => reject(opening.error)
    })
    return opened
  }

  return {
    async load() {
      const database = await ready()
      const transaction = database.transaction(STORE, 'readonly')
      const store = transaction.objectStore(STORE)
      const keys = store.getAllKeys()
      const values = store.getAll()
      await done(transaction)
      return new Map(keys.result.map((key, at) => [String(key), values.result[at]]))
    },
    async write(changes) {
      const database = await ready()
      // Strict: the browser must have given it to the disk, because the message leaves right after it.
      const transaction = database.transaction(STORE, 'readwrite', { durability: 'strict' })
      const store = transaction.objectStore(STORE)
      const wanted = new Map<string, unknown>()
      applyChanges(wanted, changes)
      for (const key of changes.remove ?? []) store.delete(key)
      for (const [key, value] of wanted) store.put(value, key)
      await done(transaction)
    },
    async stop() {
      const database = await opened?.catch(() => null)
      database?.close()
    },
  }
}

function done(transaction: IndexedDbTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onerror = () => reject(transaction.error)
    transaction.onabort = () => reject(transaction.error)
  })
}
