import { checkOptionNames } from '../../core/option-names.ts'
import type { Encryption } from '../../store/encryption/options.ts'
import { withEncryption } from '../../store/encryption/store.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import { checkMigrateMode } from '../../store/migrations.ts'
import type { ForeignTransactions, TransactionalStore } from '../../store/port.ts'
import { createSqlQueries } from '../../store/sql/queries.ts'
import type { SqlSeam } from '../../store/sql.ts'
import { createClaims } from './claims.ts'
import { createClients } from './clients.ts'
import { createClock } from './clock.ts'
import { createCore } from './core.ts'
import type { PgPool } from './driver.ts'
import { checkPool } from './driver.ts'
import { createForeign } from './foreign.ts'
import { createLanes } from './lanes.ts'
import type { RecordsLost } from './lost.ts'
import { namesIn } from './names.ts'
import { createSqlSeam } from './seam.ts'
import { createSteps } from './steps.ts'
import { createTables } from './tables.ts'
import { createTransactions } from './transactions.ts'
import type { PostgresTx } from './tx.ts'
import { createUpkeep } from './upkeep.ts'
import { createWatchers } from './watch.ts'

export type { PgClient, PgNotification, PgPool, PgQuery, PgResult } from './driver.ts'
export type { RecordsLost } from './lost.ts'
export type { PostgresTx } from './tx.ts'

export interface PostgresStoreOptions {
  /**
   * Where the tables live; made when it is missing. Two schemas share nothing. In an effect it comes before your own
   * `search_path`, so that a table that an effect creates without naming a schema lands in it. Without this option the
   * tables are where the connection's `search_path` leads.
   * @default the first of `search_path`
   */
  readonly schema?: string
  /**
   * `auto` creates and updates the tables when they are first needed; `check` changes nothing and refuses tables that are
   * not up to date. `onceonly migrations` prints the statements.
   * @default 'auto'
   */
  readonly migrate?: MigrateMode
  /**
   * What a connection of the pool is. `session`: a session of the server, for as long as it is open; the store keeps up to
   * five, with prepared statements, and one of them listens. `transaction`: a session for one transaction at a time, as
   * behind PgBouncer's `pool_mode = transaction`; the store keeps nothing, and polls instead of listening. `auto` means
   * `transaction` for pools of one or two connections and where a pooler answers instead of the server.
   * @default 'auto'
   */
  readonly poolMode?: 'auto' | 'session' | 'transaction'
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
  /**
   * Called when PostgreSQL does not have records any more that it had acknowledged to this process, as after a failover to a
   * standby that did not follow synchronously. Looked for whenever a connection was lost.
   * @default none
   */
  readonly on?: (event: RecordsLost) => void
}

export interface PostgresStore extends TransactionalStore<PostgresTx> {
  readonly foreign: ForeignTransactions
  readonly sql: SqlSeam
}

/** A second batch is under way while the first one syncs; a third was no faster on two cores. */
const LANES = 2
/** The listener, and a transaction. */
const OTHER_CLIENTS = 2
/** Twice the lanes, the listener, and a transaction. */
const CLIENTS_FOR_ROOMS = 6

/**
 * Records in PostgreSQL, on your own pool.
 *
 * @param pool Your own `pg.Pool`. One client is enough. From three on the store keeps some of them, at most five: two for
 * batches, one that listens, two for durable runs where they are used. It never ends the pool.
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { postgresStore } from 'onceonly/postgres'
 * import { Pool } from 'pg'
 *
 * const once = createLedger({ store: postgresStore(new Pool({ connectionString: process.env.DATABASE_URL })) })
 * ```
 */
export function postgresStore(pool: PgPool, options: PostgresStoreOptions = {}): PostgresStore {
  checkPool(pool)
  checkOptionNames('postgresStore', options, ['schema', 'migrate', 'poolMode', 'testClock', 'encryption', 'on'])
  const clients = createClients(pool, options.poolMode ?? 'auto')
  const names = namesIn(options.schema)
  const mode = checkMigrateMode('postgresStore', options.migrate ?? 'auto')
  const core = createCore({ clients, names, mode, report: options.on ?? (() => undefined) })
  const tables = createTables(core)
  const steps = createSteps(names)
  const watchers = createWatchers(clients, names)
  const laneCount = Math.max(1, Math.min(LANES, clients.most - OTHER_CLIENTS))
  const lanes = createLanes(clients, laneCount, names)
  // Lanes of their own for the rooms, where the pool is large enough for both.
  const roomLanes = clients.most >= CLIENTS_FOR_ROOMS ? createLanes(clients, LANES, names) : lanes
  const testClock = options.testClock ?? process.env['ONCEONLY_TEST_CLOCK'] === '1'

  const endWatching = survive(pool, core.suspect)
  const claims = createClaims({ core, steps, lanes, laneCount, watchers })
  const transactions = createTransactions({ core, steps, watchers })
  let stopping: Promise<void> | null = null

  async function stop(): Promise<void> {
    await core.drain(claims.stop())
    lanes.stop()
    roomLanes.stop()
    await watchers.stop()
    endWatching()
  }

  const store: PostgresStore = {
    name: 'postgres',
    claims,
    queries: createSqlQueries(tables),
    upkeep: createUpkeep(tables),
    clock: createClock(core, testClock, watchers.wakeAll),
    transactions,
    foreign: createForeign({ core, steps, watchers }),
    sql: createSqlSeam({ core, watchers, transactions, lanes: roomLanes }),
    rest: async () => {
      lanes.rest()
      roomLanes.rest()
      await watchers.rest()
    },
    stop: () => (stopping ??= stop()),
  }
  return withEncryption(store, options.encryption)
}

/** Called for each pool when one of its connections breaks. */
const survivors = new WeakMap<PgPool, Set<() => void>>()

/**
 * A client that breaks while it is idle is dropped by the pool, which is all that is needed; but without a listener a
 * restart of the server would end the process. Kept when the store stops, because its clients take a moment to close.
 *
 * A server that is shutting down may end a session in the same packet that opened it. The pool has stopped listening by
 * then, and its borrower does not have the client yet: so each one is listened to from its first moment.
 */
function survive(pool: PgPool, broke: () => void): () => void {
  const known = survivors.get(pool)
  const listeners = known ?? new Set()
  listeners.add(broke)
  if (known === undefined) {
    const tell = () => {
      for (const listener of listeners) listener()
    }
    survivors.set(pool, listeners)
    pool.on('error', tell)
    pool.on('connect', (client) => client.on('error', tell))
  }
  return () => void listeners.delete(broke)
}
