import { mariadbStore } from 'onceonly/mariadb'
import type { Subject } from 'onceonly/testing'
import { createDatabase } from './database.ts'

/** A fresh store for the kit, on a database of its own. */
export async function openSubject(serverUrl: string): Promise<Subject> {
  const database = await createDatabase(serverUrl)
  const stores: Subject['store'][] = []
  const another = async () => {
    const store = mariadbStore(database.pool(), { testClock: true })
    stores.push(store)
    return store
  }
  const close = async () => {
    for (const store of stores) await store.stop()
    await database.drop()
  }
  return { store: await another(), another, close }
}
