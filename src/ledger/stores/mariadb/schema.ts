import { LEDGER_ROOM, ledgerMigrations } from '../../store/ledger-migrations.ts'
import type { MigrateMode, MigrationStep } from '../../store/migrations.ts'
import { pendingMigrations, tablesTooOld } from '../../store/migrations.ts'
import { recordsView, YEAR_10000_MS } from '../../store/records-view.ts'
import { MIGRATION_MS } from '../../store/sql/calls.ts'
import {
  migrationsTable,
  pendingStatements,
  recordColumns,
  stepsOf,
  talliesTable,
  unknownsTable,
} from '../../store/sql/schema.ts'
import type { Connection } from './connection.ts'
import { TEXT } from './dialect.ts'
import { checkSession } from './session.ts'

const TABLE = `ENGINE = InnoDB ROW_FORMAT = DYNAMIC ${TEXT}`
const words = { integer: 'BIGINT', small: 'SMALLINT', text: 'LONGTEXT', id: 'BINARY(16)', options: TABLE }

/**
 * A statement that changes tables commits at once on MariaDB, so that a migration may end in the middle: each of its
 * statements can be repeated.
 */
const ownMigrations = ledgerMigrations({
  1: [
    'CREATE SEQUENCE IF NOT EXISTS onceonly_fences ENGINE = InnoDB',
    // Counts commits that changed a record with waiters; other processes look at it.
    'CREATE SEQUENCE IF NOT EXISTS onceonly_wakes NOCACHE ENGINE = InnoDB',
    `CREATE TABLE IF NOT EXISTS onceonly_records (${recordColumns(words, { id: 'NOT NULL PRIMARY KEY', key: '`key`' })},
       INDEX onceonly_records_fence (fence)) ${TABLE}`,
    unknownsTable('onceonly_unknowns', words),
    `CREATE TABLE IF NOT EXISTS onceonly_meta (one TINYINT NOT NULL PRIMARY KEY, offset_ms BIGINT NOT NULL) ${TABLE}`,
    'INSERT IGNORE INTO onceonly_meta (one, offset_ms) VALUES (1, 0)',
    // Three names are longer than an index of InnoDB may be.
    talliesTable(
      'onceonly_tallies',
      words,
      `who BINARY(20) AS (UNHEX(SHA1(CONCAT_WS(CHAR(0), tenant, caller, operation)))) PERSISTENT, UNIQUE (bucket_at, who)`,
    ),
    `CREATE OR REPLACE VIEW onceonly_records_view AS ${recordsView('onceonly_records', {
      id: 'LOWER(HEX(id))',
      time: (column) =>
        `CASE WHEN ${column} < ${YEAR_10000_MS} THEN TIMESTAMPADD(MICROSECOND, ${column} * 1000, '1970-01-01 00:00:00.000') END`,
      member: (column, ...path) => `JSON_VALUE(${column}, '$.${path.join('.')}')`,
    })}`,
  ],
})

const MIGRATIONS = migrationsTable(
  'onceonly_migrations',
  'VARCHAR(100)',
  'DATETIME(3) NOT NULL DEFAULT UTC_TIMESTAMP(3)',
  TABLE,
)

/** Locks with a name are the server's, so the name says the database. */
const LOCK = `CONCAT('onceonly ', SHA1(DATABASE()))`

/** A process that finds nothing to do takes no lock; the others queue up, and the second finds the work done. */
export async function migrate(connection: Connection, mode: MigrateMode): Promise<void> {
  await checkSession(connection)
  const known = await appliedMigrations(connection)
  const pending = pendingMigrations(LEDGER_ROOM, ownMigrations, known ?? [])
  if (known === null || pending.length > 0) {
    if (mode === 'check') throw tablesTooOld(LEDGER_ROOM, pending)
    await inLock(connection, () => runPending(connection))
  }
  await liftFences(connection)
}

async function inLock(connection: Connection, work: () => Promise<void>): Promise<void> {
  const [row] = await connection.query(`SELECT GET_LOCK(${LOCK}, ${MIGRATION_MS / 1_000}) AS held`)
  if (Number(row?.['held']) !== 1) throw new Error('Another process migrates the tables for too long.')
  await work()
  // Closing the connection, after an error, releases it as well.
  await connection.query(`DO RELEASE_LOCK(${LOCK})`)
}

async function runPending(connection: Connection): Promise<void> {
  await connection.query(MIGRATIONS)
  const applied = (await appliedMigrations(connection)) ?? []
  const statements = pendingStatements('onceonly_migrations', LEDGER_ROOM, ownMigrations, applied)
  for (const statement of statements) await connection.query(statement)
}

/**
 * Fences keep growing across a reset of the database, because the clock does. A sequence never goes back: a value that it has
 * passed is ignored.
 */
async function liftFences(connection: Connection): Promise<void> {
  const [row] = await connection.query(
    `SELECT GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       COALESCE((SELECT MAX(fence) FROM onceonly_records), 0)) AS least`,
  )
  await connection.query(`SELECT SETVAL(onceonly_fences, ${Number(row?.['least'])})`)
}

/** Null when there is no table of migrations yet. */
async function appliedMigrations(connection: Connection): Promise<MigrationStep[] | null> {
  const [table] = await connection.query(
    `SELECT 1 AS found FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'onceonly_migrations'`,
  )
  if (table === undefined) return null
  return stepsOf(
    await connection.query('SELECT version, oldest_code FROM onceonly_migrations WHERE room = ?', [LEDGER_ROOM]),
  )
}
