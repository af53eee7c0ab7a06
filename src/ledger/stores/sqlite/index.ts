import { resolve } from 'node:path'
import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import { checkOptionNames, kindOf } from '../../core/option-names.ts'
import type { Encryption } from '../../store/encryption/options.ts'
import { withEncryption } from '../../store/encryption/store.ts'
import type { MigrateMode } from '../../store/migrations.ts'
import { checkMigrateMode } from '../../store/migrations.ts'
import type { TransactionalStore } from '../../store/port.ts'
import { createSqlQueries } from '../../store/sql/queries.ts'
import type { SqlSeam, SqlTx } from '../../store/sql.ts'
import { createClaims } from './claims.ts'
import type { TimeSource } from './clock.ts'
import { systemTime } from './clock.ts'
import type { SqliteDriver } from './driver.ts'
import { openBy } from './driver.ts'
import { createEngine } from './engine.ts'
import { createForeign } from './foreign.ts'
import { createSqlSeam } from './sql.ts'
import { createStoreClock } from './store-clock.ts'
import { createTables } from './tables.ts'
import { createTransactions } from './transactions.ts'
import { createTwins } from './twins.ts'
import { createUpkeep } from './upkeep.ts'
import { createWatchers } from './watch.ts'

export type { SqliteDriver, SqliteDriverDatabase, SqliteDriverStatement } from './driver.ts'

/** What an effect holds inside a transaction on SQLite. */
export type SqliteTx = SqlTx

export interface SqliteStoreOptions {
  /**
   * `auto` creates and updates the tables when they are first needed; `check` changes nothing and refuses tables that are
   * not up to date. `onceonly migrations` prints the statements.
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
  /**
   * The class `Database` of `better-sqlite3`, for an application that opens the file with it, itself or through its ORM: one
   * process must open a file with one driver only, because the locks of one do not hold for the other.
   * @default that of `node:sqlite`
   */
  readonly driver?: SqliteDriver
  /**
   * For tests of the store itself.
   * @internal
   * @default none
   */
  readonly internal?: { readonly time?: Partial<TimeSource>; readonly holdMs?: number }
}

export interface SqliteStore extends TransactionalStore<SqliteTx>, AsyncDisposable {
  readonly sql: SqlSeam
}

/**
 * Records in one SQLite file, shared by all processes of one machine. The file is opened by the first call, and again
 * after a disk error, so that a store that was away needs no restart.
 *
 * @param path The file; it is made when it is first used. Its folder must exist.
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('onceonly.db') })
 * ```
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  const file = checkedPath(path)
  checkOptionNames('sqliteStore', options, ['migrate', 'testClock', 'internal', 'encryption', 'driver'])
  const { time: ownTime = {}, holdMs = limits.writerHoldMs } = options.internal ?? {}
  const mode = checkMigrateMode('sqliteStore', options.migrate ?? 'auto')
  const engine = createEngine(file, { ...systemTime, ...ownTime }, mode, openBy(options.driver))
  const watchers = createWatchers(engine)
  const tables = createTables(engine)
  const parts = { engine, watchers, fences: { least: 0 }, twins: createTwins(), holdMs }
  const stop = async () => {
    watchers.stop()
    await engine.stop()
  }
  const store: SqliteStore = {
    name: 'sqlite',
    claims: createClaims(parts),
    queries: createSqlQueries(tables),
    upkeep: createUpkeep(engine, tables),
    clock: createStoreClock(engine, options.testClock ?? process.env['ONCEONLY_TEST_CLOCK'] === '1'),
    transactions: createTransactions(parts),
    foreign: createForeign(parts),
    sql: createSqlSeam(engine, watchers),
    // Polls of another ledger would open the file again at once.
    rest: async () => {
      if (watchers.isIdle()) await engine.rest()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
  return withEncryption(store, options.encryption)
}

function checkedPath(path: unknown): string {
  if (typeof path !== 'string' || path.trim() === '') {
    const given = path === '' ? 'an empty string' : kindOf(path)
    throw new OnceError(
      'bad_option',
      `sqliteStore needs the path of a file, not ${given}: \`sqliteStore('onceonly.db')\`.`,
    )
  }
  if (path === ':memory:' || path.startsWith('file:')) {
    const why = 'its connections could not share it. Use `memoryStore()`, or a plain path'
    throw new OnceError('bad_option', `sqliteStore cannot open ${path}: ${why}.`)
  }
  // Absolute, so that messages name the file, and a process that changes its directory keeps its store.
  return resolve(path)
}
