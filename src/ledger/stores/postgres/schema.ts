import type { LedgerMigration } from '../../store/ledger-migrations.ts'
import { ledgerMigrations } from '../../store/ledger-migrations.ts'
import type { MigrateMode, MigrationStep } from '../../store/migrations.ts'
import { pendingMigrations, tablesTooOld } from '../../store/migrations.ts'
import { recordsView, YEAR_10000_MS } from '../../store/records-view.ts'
import { MIGRATION_MS } from '../../store/sql/calls.ts'
import { inTransaction } from '../../store/sql/connection.ts'
import {
  migrationsTable,
  pendingStatements,
  recordColumns,
  stepsOf,
  talliesTable,
  unknownsTable,
} from '../../store/sql/schema.ts'
import { clockOffsetFunction } from './clock-sql.ts'
import type { Connection } from './connection.ts'
import { isForbidden } from './errors.ts'
import type { Names } from './names.ts'
import { quoteName, quoteText } from './names.ts'
import { plannedOn } from './statement.ts'

/**
 * Two thirds of every page are left free for the second version of its rows, the settled one: an update that finds room
 * on its page, and changes no indexed column, touches no index (HOT).
 *
 * Measured with batches of 128, claimed and then settled with 200 bytes of outcome (share of HOT updates, bytes of heap
 * per row): 25: 100 %, 1 387; 35: 100 %, 928; 45: 77 %, 960; 60: 40 %, 1 056; 90: 5 %, 883. With 800 bytes 35 still
 * gives 65 %. With an index on `expires_at`, or a partial one on `state`, there are none at all.
 */
const FILL_FACTOR = 35

const words = { integer: 'bigint', small: 'smallint', text: 'text', id: 'uuid' }

export function ledgerTables(names: Names): LedgerMigration[] {
  return ledgerMigrations({
    1: [
      `CREATE SEQUENCE IF NOT EXISTS ${names.fences}`,
      // Never UNLOGGED: a crash would forget who ran what.
      `CREATE TABLE IF NOT EXISTS ${names.records} (${recordColumns(words, { id: 'PRIMARY KEY', key: 'key' })})
         WITH (fillfactor = ${FILL_FACTOR})`,
      // The only other index. Renewing and settling leave the fence alone; sweep, list and lapsed walk along it. Not
      // unique: a record that a reset lost is written again with the fence it had.
      `CREATE INDEX IF NOT EXISTS onceonly_records_fence ON ${names.records} (fence)`,
      unknownsTable(names.unknowns, words),
      clockOffsetFunction(names, 0),
      talliesTable(names.tallies, words, 'PRIMARY KEY (bucket_at, tenant, caller, operation)'),
      `CREATE OR REPLACE VIEW ${names.recordsView} AS ${recordsView(names.records, {
        id: `replace(id::text, '-', '')`,
        time: (column) => `CASE WHEN ${column} < ${YEAR_10000_MS} THEN to_timestamp(${column} / 1000.0) END`,
        member: (column, ...path) => `(${column}::json #>> '{${path.join(',')}}')`,
      })}`,
    ],
  })
}

/**
 * Brings one room's tables up to date in one transaction, or changes nothing. A process that finds nothing to do takes no
 * lock; the others queue up at an advisory lock, and the second finds the work done.
 */
export async function migrate(
  connection: Connection,
  names: Names,
  room: string,
  migrations: readonly LedgerMigration[],
  mode: MigrateMode,
): Promise<void> {
  const known = await appliedMigrations(connection, names, room)
  const pending = pendingMigrations(room, migrations, known ?? [])
  if (known !== null && pending.length === 0) return
  if (mode === 'check') throw tablesTooOld(room, pending)
  // The lock is asked for before anything is read: every statement of READ COMMITTED sees what the last holder did.
  await connection.script(
    `BEGIN ISOLATION LEVEL READ COMMITTED;
     SET LOCAL statement_timeout = ${MIGRATION_MS};
     SET LOCAL lock_timeout = 0;
     SELECT pg_advisory_xact_lock(${names.migrationLock});`,
  )
  await createSchema(connection, names)
  await connection.script(`${tableOf(names)}; ${findOwnTablesFirst(names, 'LOCAL')}`)
  const applied = (await appliedMigrations(connection, names, room)) ?? []
  for (const statement of pendingStatements(names.migrations, room, migrations, applied)) {
    await connection.script(statement)
  }
  await connection.script('COMMIT')
}

/** More grants than other processes can get between the look and the lift: a lift by less could take a fence back. */
const FENCE_MARGIN = 1_000_000

/**
 * Fences keep growing across a reset of the database, because the clock does: microseconds leave room for a million grants
 * per second. A logical replica has the rows of its primary but not the state of its sequences, so this is done at every
 * start, and after every lost connection.
 */
export async function liftFences(connection: Connection, names: Names): Promise<void> {
  const enough = `greatest(floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint, newest)`
  const look = `
    SELECT coalesce(newest > last_value, false) AS wrong,
      CASE WHEN ${enough} > last_value + ${FENCE_MARGIN} THEN ${enough}
        WHEN newest > last_value THEN newest + ${FENCE_MARGIN} END AS least
    FROM ${names.fences}, (SELECT max(fence) AS newest FROM ${names.records}) AS given`
  const [found] = await connection.script(`SELECT wrong FROM (${look}) AS found WHERE least IS NOT NULL`)
  const [row] = (found?.rows ?? []) as readonly { readonly wrong: string }[]
  if (row === undefined) return
  try {
    // One at a time, and each looks again: the later one must not undo what the earlier one lifted.
    await inTransaction(connection, `BEGIN; SELECT pg_advisory_xact_lock(${names.migrationLock})`, () =>
      connection.script(
        `SELECT setval(${quoteText(names.fences)}, least) FROM (${look}) AS found WHERE least IS NOT NULL`,
      ),
    )
  } catch (error) {
    // A user who may not set it can still take numbers from it; only a sequence behind its own records is wrong.
    if (!isForbidden(error) || row.wrong === 't') throw error
  }
}

/** A room's statements name no schema; what they create belongs beside our own tables. */
function findOwnTablesFirst(names: Names, scope: 'LOCAL' | 'SESSION'): string {
  return names.schema === null ? '' : `SET ${scope} search_path = ${quoteName(names.schema)}`
}

function tableOf(names: Names): string {
  return migrationsTable(names.migrations, 'text', 'timestamptz NOT NULL DEFAULT now()')
}

/** The same statements as `migrate` runs, as a text for another tool. */
export async function pendingSql(
  connection: Connection,
  names: Names,
  rooms: Readonly<Record<string, readonly LedgerMigration[]>>,
): Promise<readonly string[]> {
  const sql: string[] = []
  for (const [room, migrations] of Object.entries(rooms)) {
    const applied = (await appliedMigrations(connection, names, room)) ?? []
    sql.push(...pendingStatements(names.migrations, room, migrations, applied))
  }
  if (sql.length === 0) return []
  const schema = names.schema === null ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteName(names.schema)}`]
  const path = names.schema === null ? [] : [findOwnTablesFirst(names, 'SESSION')]
  return [...schema, tableOf(names), ...path, ...sql]
}

/** Asked first, because even `IF NOT EXISTS` needs the privilege to create one. */
async function createSchema(connection: Connection, names: Names): Promise<void> {
  if (names.schema === null) return
  const found = await connection.query({
    text: 'SELECT 1 FROM pg_namespace WHERE nspname = $1',
    values: [names.schema],
  })
  if (found.rows.length === 0) await connection.script(`CREATE SCHEMA ${quoteName(names.schema)}`)
}

/** Null when there is no table of migrations yet. */
async function appliedMigrations(connection: Connection, names: Names, room: string): Promise<MigrationStep[] | null> {
  const on = plannedOn(connection)
  const ask = (text: string, value: string) => on.run({ name: '', text }, [value])
  const [table] = await ask('SELECT to_regclass($1) AS found', names.migrations)
  if (table === undefined || table['found'] === null) return null
  return stepsOf(await ask(`SELECT version, oldest_code FROM ${names.migrations} WHERE room = $1`, room))
}
