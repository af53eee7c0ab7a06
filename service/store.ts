import { join } from 'node:path'
import type { SqlStore } from 'onceonly'
import { createPostgresStore } from 'onceonly/postgres'
import { createSqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import type { Config } from './config.ts'

/** What the systems stand on: the ledger's store, their own tables beside it, and the time of both. */
export interface Base {
  readonly store: SqlStore
  readonly sql: SqlStore['sql']
  /** By the store's clock: so a test that moves it moves everything. */
  now(): Promise<number>
  advance(ms: number): Promise<void>
  stop(): Promise<void>
}

const CLOCK_CALL = { timeoutMs: 5_000 }
/** Two batches, a listener, and a handful of transactions at once. */
const POOL_CLIENTS = 20

export function openBase({ storeUrl, dataFolder, testClock }: Config): Base {
  if (storeUrl === null) {
    const store = createSqliteStore({ path: join(dataFolder, 'onceonly.db'), testClock })
    return baseOf(store, () => store.stop())
  }
  const pool = new Pool({ connectionString: storeUrl, max: POOL_CLIENTS })
  const store = createPostgresStore({ pool, testClock })
  return baseOf(store, async () => {
    await store.stop()
    await pool.end()
  })
}

function baseOf(store: SqlStore, stop: () => Promise<void>): Base {
  return {
    store,
    sql: store.sql,
    stop,
    now: () => store.clock.now(CLOCK_CALL),
    advance: (ms) => store.clock.advance(ms, CLOCK_CALL),
  }
}
