import type { LedgerMigration } from '../../store/ledger-migrations.ts'
import { LEDGER_ROOM, ledgerMigrations } from '../../store/ledger-migrations.ts'
import type { MigrationStep } from '../../store/migrations.ts'
import { pendingMigrations } from '../../store/migrations.ts'
import { recordsView, YEAR_10000_MS } from '../../store/records-view.ts'
import { migrationsTable, pendingStatements, recordColumns, stepsOf, talliesTable } from '../../store/sql/schema.ts'
import type { Database } from './driver.ts'

const words = { integer: 'INTEGER', small: 'INTEGER', text: 'TEXT', id: 'BLOB' }

/**
 * New rows go to the end of a rowid table, and only a small table of 16-byte ids is written at random places: that takes
 * three times the writes of a `WITHOUT ROWID` table keyed by text.
 *
 * The ids are no index of SQLite's, because an index gives up the entry of every row with the row, each on another page,
 * and that page is what a removal costs. Here rows are removed in the order of the table, many on one page; the ids that
 * lead nowhere after that are removed in their own order, again many on one page. Measured with a million records on a
 * disk, CPU per removed record: with a unique index and parts of 64 rows 33 µs, with the table of ids 13 µs.
 */
const version1 = [
  `CREATE TABLE onceonly_records (seq INTEGER PRIMARY KEY, ${recordColumns(words, { id: 'NOT NULL', key: 'key' })})`,
  // A record is under its id when this leads to it, and the record agrees: an id whose record was removed stays a
  // while.
  'CREATE TABLE onceonly_ids (id BLOB PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID',
  // Fences only grow, so this index is written at its end; it serves the newest-first list and the low-water mark.
  'CREATE INDEX onceonly_records_fence ON onceonly_records (fence)',
  // Few records are ever unknown: this finds them without a scan and costs the others nothing.
  'CREATE TABLE onceonly_unknowns (id BLOB PRIMARY KEY NOT NULL) WITHOUT ROWID',
  // One row that every write transaction reads first: the floor of fences, the clock, and what wakes other processes.
  `CREATE TABLE onceonly_meta (
     one INTEGER PRIMARY KEY CHECK (one = 1),
     fence INTEGER NOT NULL,
     offset_ms INTEGER NOT NULL,
     wakes INTEGER NOT NULL,
     boot_id TEXT NOT NULL,
     boot_fence INTEGER NOT NULL,
     anchor_wall INTEGER NOT NULL,
     anchor_monotonic REAL NOT NULL
   )`,
  // A fence is granted once, even if the newest records are deleted by hand.
  `CREATE TRIGGER onceonly_records_floor BEFORE DELETE ON onceonly_records
   WHEN old.fence > (SELECT fence FROM onceonly_meta WHERE one = 1)
   BEGIN
     UPDATE onceonly_meta SET fence = old.fence WHERE one = 1;
   END`,
  talliesTable('onceonly_tallies', words, 'PRIMARY KEY (bucket_at, tenant, caller, operation)'),
  `CREATE VIEW onceonly_records_view AS ${recordsView('onceonly_records', {
    id: 'lower(hex(id))',
    time: (column) =>
      `strftime('%Y-%m-%dT%H:%M:%fZ', CASE WHEN ${column} < ${YEAR_10000_MS} THEN ${column} / 1000.0 END, 'unixepoch')`,
    member: (column, ...path) => `json_extract(${column}, '$.${path.join('.')}')`,
  })}`,
]

const MIGRATIONS = migrationsTable(
  'onceonly_migrations',
  'TEXT',
  `INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))`,
)

export const ownMigrations: readonly LedgerMigration[] = ledgerMigrations({ 1: version1 })
export { LEDGER_ROOM }

/** Asked before the writer is taken, so that opening a store that is up to date waits for no other process. */
export function pendingIn(db: Database, room: string, known: readonly LedgerMigration[]): readonly LedgerMigration[] {
  return pendingMigrations(room, known, appliedTo(db, room))
}

/** Runs inside a write transaction, and looks again there: another process may have been first. */
export function migrate(db: Database, room: string, known: readonly LedgerMigration[]): void {
  db.exec(MIGRATIONS)
  for (const statement of pendingStatements('onceonly_migrations', room, known, appliedTo(db, room))) db.exec(statement)
}

/** The same statements as `migrate` runs, as a text for another tool. A file that does not exist has none of them. */
export function pendingSql(
  db: Database | null,
  rooms: Readonly<Record<string, readonly LedgerMigration[]>>,
): readonly string[] {
  const sql = Object.entries(rooms).flatMap(([room, known]) =>
    pendingStatements('onceonly_migrations', room, known, db === null ? [] : appliedTo(db, room)),
  )
  return sql.length === 0 ? [] : [MIGRATIONS, ...sql]
}

function appliedTo(db: Database, room: string): MigrationStep[] {
  const table = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'onceonly_migrations'`).get()
  if (table === undefined) return []
  return stepsOf(db.prepare('SELECT version, oldest_code FROM onceonly_migrations WHERE room = ?').all(room))
}
