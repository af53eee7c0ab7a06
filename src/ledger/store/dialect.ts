/**
 * How one database writes SQL, and what it can do. A store brings its own; nothing else knows which databases there are,
 * except wings that have whole statements for one of them, by its name.
 */
export interface Dialect<Name extends string = string> {
  readonly name: Name
  readonly types: ColumnTypes
  /** Writers that work at the same time. */
  readonly writers: number
  /** Whether a wake costs the commits of others something, so that a busy listener asks for none. */
  readonly notifies: boolean
  /** Whether one statement can write several tables. */
  readonly writesInParts: boolean
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
  /** Follows the name of a joined table whose rows are to be reached by its primary key, where the planner needs telling. */
  readonly byKey?: string
  /**
   * A condition with one place for a whole list, so that the text is the same for lists of every length; `numbersValue`
   * makes the value for it.
   */
  isOneOf(column: string): string
  numbersValue(numbers: readonly number[]): string
  /** A condition on a column and a query that is run once: a plan may repeat a subquery, and lock too many rows. */
  isAnyOf(column: string, query: string): string
  /** Rows out of one JSON array: `value` is an element, `key` its place. Give the array as text. */
  elementsOf(alias: string): string
  /** The text of an element that is a JSON string. */
  elementText(value: string): string
  /** What stands before the first such character, or the whole text. */
  textBefore(column: string, character: string): string
  /** 32 random hexadecimal digits. */
  readonly randomText: string
  /** What stands in FROM, under the name `x`, for one `?` that holds a list of records as JSON. */
  recordsOf(columns: RecordColumns): string
  /** Changes the rows `r` of a table that fit one of the records `x`. */
  updateFrom(table: string, set: Changes, from: string, where: string): string
  /** Ends an INSERT: where the key is taken, the row is changed instead. `excluded` is the row that was given. */
  upsert(key: readonly string[], set: Changes): string
}

/** Types of columns. */
export interface ColumnTypes {
  /** Whole numbers up to 2^53 at least. */
  readonly integer: string
  /** Compared byte by byte: the rules of a language would only cost time. */
  readonly text: string
  /** A primary key of numbers that are never given twice, each larger than all before it. */
  readonly position: string
  /** Ends a table that is emptied as fast as it is filled. */
  readonly busyTable: string
}

/** Columns, and the expression for the new value of each. */
export type Changes = Readonly<Record<string, string>>

export type RowLock = `for ${'update' | 'share' | 'key share'}${'' | ` of ${string}`}${'' | ' skip locked'}`
export type ColumnType = 'text' | 'bigint' | 'id'
export type RecordColumns = Readonly<Record<string, ColumnType>>

/** As standard SQL and its nearest relatives write it. */
export function assignments(set: Changes): string {
  return Object.entries(set)
    .map(([column, value]) => `${column} = ${value}`)
    .join(', ')
}
