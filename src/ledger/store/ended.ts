import type { SqlSeam, SqlValue } from './sql.ts'

/** Rows that end by themselves. An index leads to the one that ends first. */
interface EndingRows {
  readonly table: string
  /** In milliseconds of the store's time. */
  readonly column: string
  /** @default all of the table */
  readonly where?: string
  readonly values?: readonly SqlValue[]
}

/**
 * Whether a row has ended so long ago: sweeps ask before they begin to remove. There is almost never anything, and to find
 * that out by a removal costs several statements, on SQLite the only writer too. By the first of them, because a condition
 * that no row meets may be looked for in the whole table.
 */
export async function hasEnded(
  { query, now }: Pick<SqlSeam, 'query' | 'now'>,
  { table, column, where = '1 = 1', values = [] }: EndingRows,
  agoMs = 0,
): Promise<boolean> {
  const first = `SELECT min(${column}) AS at FROM ${table} WHERE ${where}`
  const text = `SELECT 1 AS ended FROM (${first}) AS first WHERE first.at <= ${now} - ?`
  return (await query(text, [...values, agoMs])).length > 0
}
