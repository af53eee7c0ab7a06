import { join } from 'node:path'
import { MINUTE, type SqlStore, type Store } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import type { Config } from './config.ts'
import type { Loss } from './losses.ts'

/** What the systems stand on: the ledger's store, their own tables beside it, and the time of both. */
/** What a system of the service keeps in tables of its own. */
export type Migrations = Parameters<SqlStore['sql']['migrate']>[1]

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
/** A new client costs as much as many statements. After the 10 s of the driver an idle server would make one all the time. */
const IDLE_CLIENT_MS = 2 * MINUTE
/** Enough to look at; the number says how many there are. */
const NAMED_MOST = 20

/** `beside` is a store whose time moves with this one's. */
export function openBase(
  { storeUrl, dataFolder, testClock, encryption }: Config,
  beside: Store | null,
  onLost: (loss: Loss) => void = () => {},
): Base {
  const keys = encryption === null ? {} : { encryption }
  if (storeUrl === null) {
    const store = sqliteStore(join(dataFolder, 'onceonly.db'), { testClock, ...keys })
    return baseOf(store, beside, () => store.stop())
  }
  const pool = new Pool({ connectionString: storeUrl, max: POOL_CLIENTS, idleTimeoutMillis: IDLE_CLIENT_MS })
  const store = postgresStore(pool, {
    testClock,
    ...keys,
    on: ({ ids, of }) =>
      onLost({
        store: 'postgres',
        what: 'records',
        count: ids.length,
        line: { event: 'store.records_lost', lost: ids.length, of, ids: ids.slice(0, NAMED_MOST) },
        about: 'PostgreSQL has lost acknowledged records',
      }),
  })
  return baseOf(store, beside, async () => {
    await store.stop()
    await pool.end()
  })
}

function baseOf(store: SqlStore, beside: Store | null, stop: () => Promise<void>): Base {
  return {
    store,
    sql: store.sql,
    stop,
    now: () => store.clock.now(CLOCK_CALL),
    advance: async (ms) => {
      await store.clock.advance(ms, CLOCK_CALL)
      await beside?.clock.advance(ms, CLOCK_CALL)
    },
  }
}
