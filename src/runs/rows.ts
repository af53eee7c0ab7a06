import type { Dialect } from '../ledger/store/sql.ts'

/** A list of records as one value of a statement: the same on every SQL store, whatever their number. */
export type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** What stands in FROM, under the name `x`, for one `?` that holds the records as JSON. */
export function recordsOf(dialect: Dialect, columns: Columns): string {
  const names = Object.entries(columns)
  if (dialect === 'postgres') {
    return `json_to_recordset(?::json) as x(${names.map(([name, type]) => `${name} ${type}`).join(', ')})`
  }
  const extracts = names.map(([name]) => `json_extract(value, '$.${name}') as ${name}`)
  return `(select ${extracts.join(', ')} from json_each(?)) as x`
}

/** PostgreSQL answers a bigint as text. */
export function numberOf(value: unknown): number {
  return Number(value)
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}
