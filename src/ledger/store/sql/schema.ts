import type { LedgerMigration } from '../ledger-migrations.ts'
import type { MigrationStep } from '../migrations.ts'
import { pendingMigrations } from '../migrations.ts'

/** How one database writes the ledger's tables. */
export interface TableWords {
  readonly integer: string
  readonly small: string
  readonly text: string
  readonly id: string
  /** Ends each table. */
  readonly options?: string
}

const list = (names: readonly string[], type: string) => names.map((name) => `${name} ${type}`)

/**
 * Numbers first, so that PostgreSQL loses no space to alignment; large texts last, so that a scan for states and times never
 * follows an outcome into its overflow pages. No index is on a column that renewing or settling changes: both rewrite one
 * row in its place and nothing else. No incarnation means that the fence is it.
 */
export function recordColumns(
  { integer, small, text, id }: TableWords,
  key: { readonly id: string; readonly key: string },
) {
  return [
    ...list(['fence', 'claimed_at'], `${integer} NOT NULL`),
    ...list(['incarnation', 'due_at', 'settled_at', 'expires_at', 'gone_at', 'repeated_at'], integer),
    ...list(['replays', 'conflicts', 'in_progress'], `${integer} NOT NULL DEFAULT 0`),
    'attempts INTEGER NOT NULL',
    ...list(['state'], `${small} NOT NULL`),
    ...list(['kept'], small),
    ...list(['awaited'], `${small} NOT NULL DEFAULT 0`),
    `id ${id} ${key.id}`,
    ...list(['tenant', 'caller', 'operation', key.key, 'fingerprint', 'claim_id', 'policy'], `${text} NOT NULL`),
    ...list(['batch', 'pointer', 'detail', 'outcome'], text),
  ].join(', ')
}

/** A record that is unknown keeps its fence until it leaves that state, so the fence names it here. */
export function unknownsTable(name: string, { integer, id, options = '' }: TableWords): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (fence ${integer} NOT NULL PRIMARY KEY, id ${id} NOT NULL) ${options}`
}

/** `unique` makes a bucket and a caller a key. */
export function talliesTable(name: string, { integer, text, options = '' }: TableWords, unique: string): string {
  const columns = [
    ...list(['bucket_at', 'claims', 'replays', 'conflicts', 'in_progress'], `${integer} NOT NULL`),
    ...list(['tenant', 'caller', 'operation'], `${text} NOT NULL`),
  ]
  return `CREATE TABLE IF NOT EXISTS ${name} (${columns.join(', ')}, ${unique}) ${options}`
}

export function migrationsTable(name: string, room: string, appliedAt: string, options = ''): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (room ${room} NOT NULL, version INTEGER NOT NULL,
    oldest_code INTEGER NOT NULL, applied_at ${appliedAt}, PRIMARY KEY (room, version)) ${options}`
}

/** What brings the tables of a room up to date, and notes it; none when they are. */
export function pendingStatements(
  table: string,
  room: string,
  known: readonly LedgerMigration[],
  applied: readonly MigrationStep[],
): readonly string[] {
  return pendingMigrations(room, known, applied).flatMap(({ version, oldestCode, statements }) => [
    ...statements,
    `INSERT INTO ${table} (room, version, oldest_code)
  VALUES ('${room.replaceAll("'", "''")}', ${version}, ${oldestCode})`,
  ])
}

/** Rows of `version` and `oldest_code`. */
export function stepsOf(rows: readonly Readonly<Record<string, unknown>>[]): MigrationStep[] {
  return rows.map((row) => ({ version: Number(row['version']), oldestCode: Number(row['oldest_code']) }))
}
