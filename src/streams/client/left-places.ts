import { answered, browserIndexedDb, type IndexedDb, PLACE_PREFIX } from './indexeddb.ts'

/** The names of all places of this site, whether a tab holds them or not; none where the browser cannot list databases. */
export async function listIndexedDbPlaces(indexedDB: IndexedDb = browserIndexedDb()): Promise<readonly string[]> {
  const databases = (await indexedDB.databases?.()) ?? []
  return databases.flatMap(({ name }) =>
    name?.startsWith(PLACE_PREFIX) === true ? [name.slice(PLACE_PREFIX.length)] : [],
  )
}

/** Deletes a place with everything that is pending in it. Hold it first, so that no tab works in it. */
export async function removeIndexedDbPlace(name: string, indexedDB: IndexedDb = browserIndexedDb()): Promise<void> {
  await answered(indexedDB.deleteDatabase(PLACE_PREFIX + name))
}
