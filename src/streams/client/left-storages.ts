import { answered, browserIndexedDb, type IndexedDb, STORAGE_PREFIX } from './indexeddb.ts'

/** The names of all storages of this site, whether a tab holds them or not; none where the browser cannot list databases. */
export async function listIndexedDbStorages(indexedDB: IndexedDb = browserIndexedDb()): Promise<readonly string[]> {
  const databases = (await indexedDB.databases?.()) ?? []
  return databases.flatMap(({ name }) =>
    name?.startsWith(STORAGE_PREFIX) === true ? [name.slice(STORAGE_PREFIX.length)] : [],
  )
}

/** Deletes a storage with everything that is pending in it. Hold it first, so that no tab works in it. */
export async function removeIndexedDbStorage(name: string, indexedDB: IndexedDb = browserIndexedDb()): Promise<void> {
  await answered(indexedDB.deleteDatabase(STORAGE_PREFIX + name))
}
