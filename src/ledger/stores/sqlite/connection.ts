import { existsSync } from 'node:fs'
import type { MigrateMode } from '../../store/migrations.ts'
import { tablesTooOld } from '../../store/migrations.ts'
import type { Checkpoints } from './checkpoints.ts'
import { createCheckpoints } from './checkpoints.ts'
import type { Anchor, Clock, MetaStatements } from './clock.ts'
import { anchor, needsAnchor, nowOf, prepareMeta } from './clock.ts'
import type { Database, OpenDatabase, Prepared } from './driver.ts'
import { unavailable } from './errors.ts'
import { makePrivate } from './private-file.ts'
import type { RecordStatements } from './records.ts'
import { prepareRecords } from './records.ts'
import { LEDGER_ROOM, migrate, ownMigrations, pendingIn } from './schema.ts'
import type { Statements } from './statements.ts'
import { createStatements } from './statements.ts'

/** One open file with its prepared statements. */
export interface Connection {
  readonly db: Database
  readonly meta: MetaStatements
  readonly records: RecordStatements
  readonly checkpoints: Checkpoints
  /** Statements of users, of other rooms, and the rarer ones of ours, prepared when first used. */
  readonly statements: Statements
  /** Topics that statements woke since the last commit. */
  readonly woken: Set<string>
  /** Begins a write transaction. Throws when another process holds the lock. `held` is null before it. */
  readonly begin: Prepared
  readonly commit: Prepared
  /** The clock as of the open write transaction, whose lock keeps other processes from moving it. */
  held: Anchor | null
}

export interface Connections {
  /** Group commits and upkeep, each in one turn of the event loop. */
  readonly writer: Connection
  /** Transactions with a user's effect inside: whatever is written here belongs to that effect. */
  readonly transaction: Connection
  /** Never waits for a writer, and cannot write. */
  readonly reader: Connection
  close(): void
}

/** Enough for the hot pages of the index on ids; the operating system caches the rest. */
const CACHE_KIB = 16 * 1_024
/** A burst may let the log grow; it is cut to this afterwards. */
const LOG_BYTES = 64 * 1_024 * 1_024

/** Throws SQLite's own error when it cannot be done at once; the caller knows which of them are worth another try. */
export function openConnections(path: string, clock: Clock, mode: MigrateMode, openFile: OpenDatabase): Connections {
  if (mode === 'check' && !existsSync(path)) throw tablesTooOld(LEDGER_ROOM, ownMigrations)
  const opened: Database[] = []
  const close = () => {
    for (const db of opened.splice(0)) if (db.isOpen) db.close()
  }
  const open = (): Database => {
    const db = openFile(path)
    opened.push(db)
    db.exec(`PRAGMA synchronous = FULL; PRAGMA cache_size = -${CACHE_KIB}`)
    return db
  }
  try {
    makePrivate(path)
    const writer = open()
    prepareFile(writer, path, clock, mode)
    const transaction = open()
    const reader = open()
    reader.exec('PRAGMA query_only = ON')
    return {
      writer: prepare(writer, clock),
      transaction: prepare(transaction, clock),
      reader: prepare(reader, clock),
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

function prepareFile(db: Database, path: string, clock: Clock, mode: MigrateMode): void {
  const journal = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
  if (journal !== 'wal')
    throw unavailable(path, new Error(`its file system allows only the journal mode ${journal}`), 'no')
  db.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`)
  const pending = pendingIn(db, LEDGER_ROOM, ownMigrations)
  if (pending.length > 0 && mode === 'check') throw tablesTooOld(LEDGER_ROOM, pending)
  if (pending.length === 0 && !needsAnchor(db, clock)) return
  // Many processes may come here at once: one is first, and the others find nothing left to do.
  db.exec('BEGIN IMMEDIATE')
  try {
    migrate(db, LEDGER_ROOM, ownMigrations)
    anchor(db, clock)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** The store's time as SQL, so that the rooms' statements are the same on every store. */
const NOW = 'onceonly_now'
export const NOW_SQL = `${NOW}()`

const WAKE = 'onceonly_wake'
export const wakeSql = (topic: string) => `${WAKE}('${topic}')`
/** What `wakeSql` writes, with its topic. */
export const WAKE_SQL = /onceonly_wake\('([^']*)'\)/g

function prepare(db: Database, clock: Clock): Connection {
  const meta = prepareMeta(db)
  const statements = createStatements(db)
  const woken = new Set<string>()
  const connection: Connection = {
    db,
    meta: {
      ...meta,
      addOffset: (ms) => {
        connection.held = null
        meta.addOffset(ms)
      },
    },
    records: prepareRecords(db),
    checkpoints: createCheckpoints(db),
    statements,
    woken,
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    held: null,
  }
  db.function(NOW, () => {
    const anchored = db.isTransaction ? (connection.held ??= meta.clock()) : meta.clock()
    return BigInt(nowOf(anchored, clock))
  })
  db.function(WAKE, (topic) => {
    woken.add(String(topic))
    return null
  })
  return connection
}
