/** What is used of the browser's `indexedDB`, so that the library needs no types of the DOM. */
export interface IndexedDb {
  open(name: string, version: number): IndexedDbOpening
  deleteDatabase(name: string): IndexedDbRequest<unknown>
  /** Not in every browser. */
  databases?(): Promise<readonly { readonly name?: string | undefined }[]>
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
  onversionchange: (() => void) | null
  createObjectStore(name: string): unknown
  transaction(store: string, mode: 'readonly' | 'readwrite', options?: { durability: 'strict' }): IndexedDbTransaction
  close(): void
}

export interface IndexedDbTransaction {
  readonly error: unknown
  oncomplete: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  abort(): void
  objectStore(name: string): IndexedDbStore
}

export interface IndexedDbStore {
  get(key: string): IndexedDbRequest<unknown>
  put(value: unknown, key: string): unknown
  delete(key: string): unknown
  getAllKeys(): IndexedDbRequest<readonly unknown[]>
  getAll(): IndexedDbRequest<readonly unknown[]>
}

/** Of the names of databases that are storages. */
export const STORAGE_PREFIX = 'onceonly:'

export function browserIndexedDb(): IndexedDb {
  return (globalThis as unknown as { indexedDB: IndexedDb }).indexedDB
}

/** A database with one store. */
export function openDatabase(indexedDB: IndexedDb, name: string, store: string): Promise<IndexedDbDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name, 1)
    opening.onupgradeneeded = () => void opening.result.createObjectStore(store)
    opening.onsuccess = () => {
      // Another tab deletes it: keeping it open would make that tab wait for as long as this one lives.
      opening.result.onversionchange = () => opening.result.close()
      resolve(opening.result)
    }
    opening.onerror = () => reject(opening.error)
  })
}

export function answered<T>(request: IndexedDbRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

export function committed(transaction: IndexedDbTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onerror = () => reject(transaction.error)
    transaction.onabort = () => reject(transaction.error)
  })
}
