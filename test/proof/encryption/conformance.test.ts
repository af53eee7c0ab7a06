import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { Encryption } from 'onceonly'
import { mariadbStore } from 'onceonly/mariadb'
import type { Subject } from 'onceonly/testing'
import { conformanceCases, runCase, storeConformance } from 'onceonly/testing'
import { memorySubject, postgresSubjects, redisSubjects, sqliteSubject } from '../../contract/stores/subjects.ts'
import { createDatabase } from '../../support/stores/mariadb/database.ts'

/** Encrypted, every store decides as it does in plain. */
const encryption: Encryption = { keys: { k1: randomBytes(32), k2: randomBytes(32) }, writeWith: 'k2' }
const keys = { encryption }

describe('memory', () => storeConformance({ test, open: () => memorySubject(keys), histories: 30 }))
describe('SQLite', () => storeConformance({ test, open: () => sqliteSubject(keys), histories: 20 }))

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
const redis = process.env['ONCEONLY_TEST_REDIS_URL']
const mariadb = process.env['ONCEONLY_TEST_MARIADB_URL']
if (postgres === undefined || redis === undefined || mariadb === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_…_URL is not set')
  test('servers', { skip: 'no servers' }, () => {})
} else {
  const databases = await postgresSubjects(postgres, { keys })
  const prefixes = redisSubjects(redis, keys)
  after(() => Promise.all([databases.end(), prefixes.end()]))
  describe('PostgreSQL', () => storeConformance({ test, open: databases.open, histories: 10 }))
  describe('Redis', () => storeConformance({ test, open: prefixes.open, histories: 10 }))
  // A database for each case takes its time: random histories alone.
  describe('MariaDB', () => {
    const cases = conformanceCases({ histories: 4 }).slice(-4)
    for (const each of cases) test(each.name, () => runCase(each, () => mariadbSubject(mariadb)))
  })
}

async function mariadbSubject(serverUrl: string): Promise<Subject> {
  const database = await createDatabase(serverUrl)
  const stores: Subject['store'][] = []
  const another = async () => {
    const store = mariadbStore(database.pool(), { testClock: true, ...keys })
    stores.push(store)
    return store
  }
  const close = async () => {
    for (const store of stores) await store.stop()
    await database.drop()
  }
  return { store: await another(), another, close }
}
