import type { LedgerRecord } from '../../core/record.ts'
import type { Dialect } from '../dialect.ts'
import type { Call, RecordView } from '../port.ts'
import type { RecordRow } from '../row.ts'
import { fromRow, stateCode } from '../row.ts'

/** The ledger's tables on one database, for every statement about them that is written once. */
export interface RecordTables {
  readonly dialect: Dialect
  readonly records: string
  /** The records whose outcome is unknown, and the column that is the key of their table. */
  readonly unknowns: string
  readonly unknownsKey: 'fence' | 'id'
  readonly tallies: string
  /** SQL: the store's time in whole milliseconds. */
  readonly now: string
  /** SQL: the largest fence that was granted. */
  readonly lastFence: string
  /**
   * A fence may be taken this long before its row is committed, so that a smaller one appears behind a larger one. Zero where
   * fences are committed in their order.
   */
  readonly inFlightMs: number
  /** The column that leads to a row fastest, and that distinguishes two rows of one fence. */
  readonly place: { readonly column: string; readonly type: 'bigint' | 'id' }
  /** SQL: the record `r` of an id. */
  byId(id: string): string
  /** SQL: the end of the lease of a record, where it is not simply the column. */
  dueAt?(alias: string): string
  /** SQL: joins the rows `r` of one list of fences, where a condition on the list would read the whole table. */
  readonly ofFences?: string
  /** SQL: removes the counts `x` of one list, where a condition on the list would wait for counts that others hold. */
  removeTallies?(list: string): string
  /** Rows that one statement looks at, where other callers wait for it; the next statement then comes a turn later. */
  readonly stepRows: number
  /** Rows of one statement that writes. */
  readonly writeRows: number
  /** Counts take steps by place where others would wait; elsewhere one statement looks at the whole table. */
  readonly countsInSteps: boolean
  /** Statements one after the other, under the deadline of the call. */
  read<T>(call: Call, work: (query: TableQuery) => Promise<T>): Promise<T>
  /** The same for a look at the whole table, which the server gives up when the caller does. */
  scan<T>(call: Call, work: (query: TableQuery) => Promise<T>): Promise<T>
  /** Upkeep: one transaction, or one for each statement where there is no lock on rows. */
  write<T>(call: Call, work: (query: TableQuery) => Promise<T>): Promise<T>
}

/** `?` stands for a value. */
export type TableQuery = (text: string, values?: readonly TableValue[]) => Promise<readonly StoredRow[]>

export type TableValue = string | number | null

/** A row as its driver gives it: whole numbers are numbers, or text. */
export type StoredRow = Readonly<Record<string, unknown>>

export const RUNNING = `state IN (${stateCode.reserved}, ${stateCode.running})`

/** The columns of a record, apart from its counts. */
export const recordColumns = [
  'id',
  'tenant',
  'caller',
  'operation',
  'key',
  'batch',
  'fingerprint',
  'state',
  'claim_id',
  'fence',
  'incarnation',
  'attempts',
  'claimed_at',
  'due_at',
  'settled_at',
  'expires_at',
  'gone_at',
  'kept',
  'outcome',
  'pointer',
  'policy',
  'awaited',
  'detail',
] as const satisfies readonly (keyof RecordRow)[]

export function columnsOf(alias: string): string {
  return recordColumns.map((column) => `${alias}.${column}`).join(', ')
}

/** What `recordOf` reads. */
export function recordSql({ dialect, dueAt }: Pick<RecordTables, 'dialect' | 'dueAt'>, alias: string): string {
  const special: Readonly<Record<string, string>> = {
    id: `${dialect.idText(`${alias}.id`)} AS id`,
    ...(dueAt === undefined ? {} : { due_at: `${dueAt(alias)} AS due_at` }),
  }
  return recordColumns.map((column) => special[column] ?? `${alias}.${column}`).join(', ')
}

/** And what `viewOf` reads. */
export function viewSql(tables: RecordTables, alias: string): string {
  const counts = ['replays', 'conflicts', 'in_progress', 'repeated_at'].map((column) => `${alias}.${column}`)
  return `${recordSql(tables, alias)}, ${counts.join(', ')}`
}

export function recordOf(row: StoredRow): LedgerRecord {
  return fromRow({
    // PostgreSQL writes a uuid with dashes; a record id has none.
    id: text(row, 'id').replaceAll('-', ''),
    tenant: text(row, 'tenant'),
    caller: text(row, 'caller'),
    operation: text(row, 'operation'),
    key: text(row, 'key'),
    batch: textOrNull(row, 'batch'),
    fingerprint: text(row, 'fingerprint'),
    state: Number(row['state']),
    claim_id: text(row, 'claim_id'),
    fence: Number(row['fence']),
    // No incarnation means that the fence is it.
    incarnation: numberOf(row['incarnation']) ?? Number(row['fence']),
    attempts: Number(row['attempts']),
    claimed_at: Number(row['claimed_at']),
    due_at: numberOf(row['due_at']),
    settled_at: numberOf(row['settled_at']),
    expires_at: numberOf(row['expires_at']),
    gone_at: numberOf(row['gone_at']),
    kept: numberOf(row['kept']),
    outcome: textOrNull(row, 'outcome'),
    pointer: textOrNull(row, 'pointer'),
    policy: text(row, 'policy'),
    awaited: Number(row['awaited']),
    detail: textOrNull(row, 'detail'),
  })
}

function text(row: StoredRow, column: string): string {
  return row[column] as string
}

function textOrNull(row: StoredRow, column: string): string | null {
  return (row[column] ?? null) as string | null
}

export function viewOf(row: StoredRow): RecordView {
  return {
    record: recordOf(row),
    replays: Number(row['replays']),
    conflicts: Number(row['conflicts']),
    inProgress: Number(row['in_progress']),
    repeatedAt: numberOf(row['repeated_at']),
  }
}

export function numberOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}
