import { test } from 'node:test'
import { mariadbStore } from 'onceonly/mariadb'
import type { Subject } from 'onceonly/testing'
import { storeConformance } from 'onceonly/testing'
import { createDatabase } from '../../../support/stores/mariadb/database.ts'

const url = process.env['ONCEONLY_TEST_MARIADB_URL']

async function openSubject(serverUrl: string): Promise<Subject> {
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

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_MARIADB_URL is not set')
  test('MariaDB', { skip: 'no MariaDB server' }, () => {})
} else {
  storeConformance({ test, open: () => openSubject(url), histories: 30 })
}
