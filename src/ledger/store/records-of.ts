import type { Dialect } from './sql.ts'

/** A list of records as one value of a statement: the same on every SQL store, whatever their number. */
export type RecordColumns = Readonly<Record<string, 'text' | 'bigint'>>

/** What stands in FROM, under the name `x`, for one `?` that holds the records as JSON. */
export function recordsOf(dialect: Dialect, columns: RecordColumns): string {
  const names = Object.entries(columns)
  if (dialect === 'postgres') {
    return `json_to_recordset(?::json) as x(${names.map(([name, type]) => `${name} ${type}`).join(', ')})`
  }
  const extracts = names.map(([name]) => `json_extract(value, '$.${name}') as ${name}`)
  return `(select ${extracts.join(', ')} from json_each(?)) as x`
}
