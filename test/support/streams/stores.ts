import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { SqlStore } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'

/** An SQL store of its own for one test; `another` is a second one on the same data, as another process would have it. */
export interface StreamStore {
  readonly store: SqlStore
  another(): SqlStore
}

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgresUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')
const noPostgres = postgresUrl === undefined ? 'no PostgreSQL server' : false

/** The same test on SQLite and on PostgreSQL. */
export function onEverySqlStore(title: string, body: (given: StreamStore) => Promise<void>): void {
  describe(title, () => {
    test('sqlite', () => onSqlite(body))
    test('postgres', { skip: noPostgres }, () => onPostgres(body))
  })
}

/** The clock of a store, and one beside it that is moved along with it. */
export function clockOf(store: SqlStore): { nowMs(): number; advance(ms: number): Promise<void> } {
  let movedMs = 0
  return {
    nowMs: () => Date.now() + movedMs,
    async advance(ms) {
      movedMs += ms
      await store.clock.advance(ms, { timeoutMs: 60_000 })
    },
  }
}

export async function onSqlite(body: (given: StreamStore) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-stream-'))
  const stores: SqlStore[] = []
  const another = () => {
    const store = sqliteStore(join(folder, 'stream.db'), { testClock: true })
    stores.push(store)
    return store
  }
  try {
    await body({ store: another(), another })
  } finally {
    for (const store of stores) await store.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function onPostgres(body: (given: StreamStore) => Promise<void>): Promise<void> {
  const database = await createDatabase(postgresUrl as string)
  const ends: (() => Promise<void>)[] = []
  const another = () => {
    const pool = new Pool({ connectionString: database.url, max: 10 })
    pool.on('error', () => {})
    const store = postgresStore(pool, { testClock: true })
    ends.push(() => store.stop().then(() => pool.end()))
    return store
  }
  try {
    await body({ store: another(), another })
  } finally {
    for (const end of ends) await end()
    await database.drop()
  }
}
