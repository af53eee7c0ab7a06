import type { DatabaseSync } from 'node:sqlite'
import { LEDGER_ROOM, ledgerMigrations } from '../../store/ledger-migrations.ts'
import type { MigrationStep } from '../../store/migrations.ts'
import { pendingMigrations } from '../../store/migrations.ts'
import { recordsView, YEAR_10000_MS } from '../../store/records-view.ts'

/**
 * New rows go to the end of a rowid table, and only a small table of 16-byte ids is written at random places: that takes
 * three times the writes of a `WITHOUT ROWID` table keyed by text.
 *
 * The ids are no index of SQLite's, because an index gives up the entry of every row with the row, each on another page,
 * and that page is what a removal costs. Here rows are removed in the order of the table, many on one page; the ids that
 * lead nowhere after that are removed in their own order, again many on one page. Measured with a million records on a
 * disk, CPU per removed record: with a unique index and parts of 64 rows 33 µs, with the table of ids 13 µs.
 *
 * The small columns stand first and the outcome last, so that a scan for states and times never follows a large
 * outcome into its overflow pages. No index is on a column that renewing or settling changes: both rewrite one row in
 * its own page and nothing else.
 */
const version1 = [
  `CREATE TABLE onceonly_records (
     seq INTEGER PRIMARY KEY,
     id BLOB NOT NULL,
     fence INTEGER NOT NULL,
     state INTEGER NOT NULL,
     due_at INTEGER,
     expires_at INTEGER,
     gone_at INTEGER,
     settled_at INTEGER,
     claimed_at INTEGER NOT NULL,
     incarnation INTEGER NOT NULL,
     attempts INTEGER NOT NULL,
     awaited INTEGER NOT NULL,
     kept INTEGER,
     replays INTEGER NOT NULL DEFAULT 0,
     conflicts INTEGER NOT NULL DEFAULT 0,
     in_progress INTEGER NOT NULL DEFAULT 0,
     repeated_at INTEGER,
     claim_id TEXT NOT NULL,
     fingerprint TEXT NOT NULL,
     policy TEXT NOT NULL,
     tenant TEXT NOT NULL,
     caller TEXT NOT NULL,
     operation TEXT NOT NULL,
     key TEXT NOT NULL,
     batch TEXT,
     pointer TEXT,
     detail TEXT,
     outcome TEXT
   )`,
  // A record is under its id when this leads to it, and the record agrees: an id whose record was removed stays a
  // while.
  'CREATE TABLE onceonly_ids (id BLOB PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID',
  // Fences only grow, so this index is written at its end; it serves the newest-first list and the low-water mark.
  'CREATE INDEX onceonly_records_fence ON onceonly_records (fence)',
  // Few records are ever unknown: a table of them finds them without a scan and costs the others nothing. An unknown
  // record keeps its fence, so the fence names it here.
  'CREATE TABLE onceonly_unknowns (fence INTEGER PRIMARY KEY, id BLOB NOT NULL)',
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
  `CREATE TABLE onceonly_tallies (
     bucket_at INTEGER NOT NULL,
     tenant TEXT NOT NULL,
     caller TEXT NOT NULL,
     operation TEXT NOT NULL,
     claims INTEGER NOT NULL,
     replays INTEGER NOT NULL,
     conflicts INTEGER NOT NULL,
     in_progress INTEGER NOT NULL,
     PRIMARY KEY (bucket_at, tenant, caller, operation)
   ) WITHOUT ROWID`,
  `CREATE VIEW onceonly_records_view AS ${recordsView('onceonly_records', {
    id: 'lower(hex(id))',
    time: (column) =>
      `strftime('%Y-%m-%dT%H:%M:%fZ', CASE WHEN ${column} < ${YEAR_10000_MS} THEN ${column} / 1000.0 END, 'unixepoch')`,
    member: (column, ...path) => `json_extract(${column}, '$.${path.join('.')}')`,
  })}`,
]

const migrationsTable = `CREATE TABLE IF NOT EXISTS onceonly_migrations (
  room TEXT NOT NULL,
  version INTEGER NOT NULL,
  oldest_code INTEGER NOT NULL,
  applied_at INTEGER NOT NULL,
  PRIMARY KEY (room, version)
) WITHOUT ROWID`

export interface SqliteMigration extends MigrationStep {
  readonly statements: readonly string[]
}

export const ownMigrations: readonly SqliteMigration[] = ledgerMigrations({ 1: version1 })
export { LEDGER_ROOM }

/** Asked before the writer is taken, so that opening a store that is up to date waits for no other process. */
export function pendingIn(
  db: DatabaseSync,
  room: string,
  known: readonly SqliteMigration[],
): readonly SqliteMigration[] {
  const table = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'onceonly_migrations'`).get()
  return table === undefined ? known : pendingMigrations(room, known, appliedTo(db, room))
}

/** Runs inside a write transaction, and looks again there: another process may have been first. */
export function migrate(db: DatabaseSync, room: string, known: readonly SqliteMigration[], wallMs: number): void {
  db.exec(migrationsTable)
  const note = db.prepare(
    'INSERT INTO onceonly_migrations (room, version, oldest_code, applied_at) VALUES (?, ?, ?, ?)',
  )
  for (const { version, oldestCode, statements } of pendingMigrations(room, known, appliedTo(db, room))) {
    for (const statement of statements) db.exec(statement)
    note.run(room, version, oldestCode, Math.floor(wallMs))
  }
}

/** The same statements as `migrate` runs, as a text for another tool. A file that does not exist has none of them. */
export function pendingSql(
  db: DatabaseSync | null,
  rooms: Readonly<Record<string, readonly SqliteMigration[]>>,
): readonly string[] {
  const sql = Object.entries(rooms).flatMap(([room, known]) =>
    (db === null ? known : pendingIn(db, room, known)).flatMap(({ version, oldestCode, statements }) => [
      ...statements,
      `INSERT INTO onceonly_migrations (room, version, oldest_code, applied_at)
  VALUES ('${room}', ${version}, ${oldestCode}, CAST(unixepoch('subsec') * 1000 AS INTEGER))`,
    ]),
  )
  return sql.length === 0 ? [] : [migrationsTable, ...sql]
}

function appliedTo(db: DatabaseSync, room: string): MigrationStep[] {
  const rows = db.prepare('SELECT version, oldest_code FROM onceonly_migrations WHERE room = ?').all(room)
  return rows.map((row) => ({ version: Number(row['version']), oldestCode: Number(row['oldest_code']) }))
}
