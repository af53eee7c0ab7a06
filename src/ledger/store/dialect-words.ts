/** What the dialects of SQL write differently. Whole statements that differ stand with the wing that owns the table. */
export interface DialectWords {
  /**
   * Ends a SELECT whose rows stay locked until the end of the transaction. Empty where a write transaction excludes
   * every other one.
   */
  lock(how: RowLock): string
  /** A place for a value whose type the statement does not show. An id is given as 32 hexadecimal digits. */
  place(type: ColumnType): string
  /** The 32 hexadecimal digits of a column that holds an id. */
  idText(column: string): string
  /** A join that reads its left side first, where the planner cannot be trusted with that. */
  readonly orderedJoin: string
  /**
   * A condition with one place for a whole list, so that the text is the same for lists of every length; `numbersValue`
   * makes the value for it.
   */
  isOneOf(column: string): string
  numbersValue(numbers: readonly number[]): string
  /** Rows out of one JSON array: `value` is an element, `key` its place. Give the array as text. */
  elementsOf(alias: string): string
  /** What stands in FROM, under the name `x`, for one `?` that holds a list of records as JSON. */
  recordsOf(columns: RecordColumns): string
  /** Changes the rows `r` of a table that fit one of the records `x`. */
  updateFrom(table: string, set: Changes, from: string, where: string): string
  /** Ends an INSERT: where the key is taken, the row is changed instead. `excluded` is the row that was given. */
  upsert(key: readonly string[], set: Changes): string
}

/** Columns, and the expression for the new value of each. */
export type Changes = Readonly<Record<string, string>>

export type RowLock = `for ${'update' | 'share'}${'' | ` of ${string}`}${'' | ' skip locked'}`
export type ColumnType = 'text' | 'bigint' | 'id'
export type RecordColumns = Readonly<Record<string, ColumnType>>

/** As standard SQL and its nearest relatives write it. */
export function assignments(set: Changes): string {
  return Object.entries(set)
    .map(([column, value]) => `${column} = ${value}`)
    .join(', ')
}
