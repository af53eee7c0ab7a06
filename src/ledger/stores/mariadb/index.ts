import { limits } from '../../core/limits.ts'
import { checkOptionNames } from '../../core/option-names.ts'
import type { Encryption } from '../../store/encryption/options.ts'
import { withEncryption } from '../../store/encryption/store.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import { checkMigrateMode } from '../../store/migrations.ts'
import type { TransactionalStore } from '../../store/port.ts'
import { createCalls } from '../../store/sql/calls.ts'
import { createLanes } from '../../store/sql/lanes.ts'
import { createSqlQueries } from '../../store/sql/queries.ts'
import { createClaims } from './claims.ts'
import { createClock } from './clock.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { MariadbPool } from './driver.ts'
import { checkPool } from './driver.ts'
import { errors } from './errors.ts'
import { migrate } from './schema.ts'
import { createTables } from './tables.ts'
import type { MariadbTx } from './transactions.ts'
import { createTransactions } from './transactions.ts'
import { createUpkeep } from './upkeep.ts'
import { createWatchers } from './watch.ts'

export type { MariadbConnection, MariadbPool, MariadbQuery } from './driver.ts'
export type { MariadbTx } from './transactions.ts'

export interface MariadbStoreOptions {
  /**
   * `auto` creates and updates the tables when they are first needed; `check` changes nothing and refuses tables that are
   * not up to date.
   * @default 'auto'
   */
  readonly migrate?: MigrateMode
  /**
   * Lets `store.clock.advance` move the store's time, for tests. `ONCEONLY_TEST_CLOCK=1` does the same.
   * @default false
   */
  readonly testClock?: boolean
  /**
   * Encrypts what the store keeps. A store that was encrypted refuses processes without its keys.
   * @default none
   */
  readonly encryption?: Encryption
}

export type MariadbStore = TransactionalStore<MariadbTx>

/** A second batch is under way while the first one syncs. */
const LANES = 2

/** A process that was paused keeps no lock for longer than a call may take. */
const SETTINGS = `SET SESSION idle_transaction_timeout = ${limits.storeCallMs / 1_000},
  SESSION innodb_lock_wait_timeout = 1, SESSION max_statement_time = ${limits.storeCallMs / 1_000}`

/**
 * Records in MariaDB, on your own pool. Effects commit with their record; the tables of other parts of the package (outbox,
 * runs, streams) need SQLite or PostgreSQL.
 *
 * @param pool Your own pool, of `createPool` of `mariadb`, with a database. The store keeps up to two of its connections, and
 * never ends the pool. Give it a `connectionLimit` of three at least, and one more for each transaction that runs at the same
 * time.
 * @example
 * ```ts
 * import { createPool } from 'mariadb'
 * import { createLedger } from 'onceonly'
 * import { mariadbStore } from 'onceonly/mariadb'
 *
 * const once = createLedger({ store: mariadbStore(createPool({ host: 'db', user: 'app', database: 'app' })) })
 * ```
 */
export function mariadbStore(pool: MariadbPool, options: MariadbStoreOptions = {}): MariadbStore {
  checkPool(pool)
  checkOptionNames('mariadbStore', options, ['migrate', 'testClock', 'encryption'])
  const mode = checkMigrateMode('mariadbStore', options.migrate ?? 'auto')
  const borrowOne = (deadline: Parameters<typeof borrow>[1]) => borrow(pool, deadline)
  const calls = createCalls<Connection>({
    errors,
    borrow: borrowOne,
    prepare: (connection) => migrate(connection, mode),
  })
  const lanes = createLanes<Connection>({
    count: LANES,
    errors,
    borrow: borrowOne,
    prepare: (connection) => connection.query(SETTINGS),
  })
  const tables = createTables(calls)
  const watchers = createWatchers(calls)
  const claims = createClaims({ calls, lanes, laneCount: LANES, watchers })
  let stopping: Promise<void> | null = null

  async function stop(): Promise<void> {
    watchers.stop()
    await calls.drain(claims.stop())
    lanes.stop()
  }

  const store: MariadbStore = {
    name: 'mariadb',
    claims,
    queries: createSqlQueries(tables),
    upkeep: createUpkeep(tables),
    clock: createClock(calls, options.testClock ?? process.env['ONCEONLY_TEST_CLOCK'] === '1'),
    transactions: createTransactions(pool, calls, watchers),
    rest: async () => lanes.rest(),
    stop: () => (stopping ??= stop()),
  }
  return withEncryption(store, options.encryption)
}
