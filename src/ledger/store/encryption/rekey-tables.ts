import { OnceError } from '../../core/errors.ts'
import type { ColumnKind, EncryptedColumns, SqlRow, SqlSeam } from '../sql.ts'
import type { Opened } from './opened.ts'
import { ROW } from './plain.ts'

interface Tools {
  /** The store's own: texts come as they are stored. */
  readonly sql: SqlSeam
  readonly on: Opened
  readonly columns: EncryptedColumns
}

interface Step {
  readonly cursor: string | null
  readonly at: string
  readonly looked: number
  readonly changed: number
  readonly left: number
}

/** The next rows of a table, or of the one behind it; null after the last table. */
export async function rekeyTable(
  { sql, on, columns }: Tools,
  { table, after, limit }: { table: string; after: string | null; limit: number },
): Promise<Step | null> {
  const names = await existing(sql, Object.keys(columns))
  const next = after === null ? names.find((name) => name > table) : table
  if (next === undefined) return null
  const place = sql.dialect.rowPlace
  const kinds = Object.entries(columns[next] ?? {})
  const { mark } = on.box
  const current = `${mark}.${on.encryption.writeWith}.`
  const wrong = kinds.map(([column, kind]) =>
    kind === 'secret'
      ? `substr(${column}, 1, ${current.length}) <> '${current}'`
      : `substr(${column}, 1, ${mark.length + 1}) <> '${mark}~'`,
  )
  const rows = await sql.query<SqlRow>(
    `SELECT CAST(${place.column} AS text) AS onceonly_place, ${kinds.map(([column]) => column).join(', ')} FROM ${next}
     WHERE ${place.column} > ${place.value} AND (${wrong.join(' OR ')}) ORDER BY ${place.column} LIMIT ${limit}`,
    [place.valueOf(after ?? place.first)],
  )
  const counts = { changed: 0, left: 0, current: 0 }
  for (const row of rows) counts[await rewrite({ sql, on }, next, kinds, row)]++
  const last = rows.length < limit ? null : String(rows.at(-1)?.['onceonly_place'])
  const { changed, left } = counts
  return { cursor: last, at: next, looked: rows.length, changed, left }
}

const ROWS_AT_ONCE = 200

/** Every column of these tables that rows are looked for by. */
export async function rekeyLookups(sql: SqlSeam, on: Opened, columns: EncryptedColumns): Promise<void> {
  const looked = Object.entries(columns).flatMap(([table, kinds]) => {
    const lookups = Object.entries(kinds).filter(([, kind]) => kind === 'lookup')
    return lookups.length === 0 ? [] : [[table, Object.fromEntries(lookups)] as const]
  })
  const tools = { sql, on, columns: Object.fromEntries(looked) }
  for (let place: { table: string; after: string | null } = { table: '', after: null }; ; ) {
    const step = await rekeyTable(tools, { ...place, limit: ROWS_AT_ONCE })
    if (step === null) return
    place = { table: step.at, after: step.cursor }
  }
}

interface Change {
  readonly column: string
  readonly before: string
  /** Null where it cannot be decrypted. */
  readonly after: string | null
}

function changeOf({ box, encryption }: Opened, column: string, kind: ColumnKind, before: unknown): Change[] {
  if (typeof before !== 'string') return []
  const key = box.keyOf(before)
  if (key !== null && (key === encryption.writeWith || encryption.lost.includes(key))) return []
  const isOurs = before.startsWith(box.mark)
  if (isOurs && kind === 'lookup') return []
  const text = isOurs ? box.open(before, ROW) : before
  const seal = kind === 'lookup' ? box.token : box.seal
  return [{ column, before, after: text === null ? null : seal(text, ROW) }]
}

/** In one statement, because a row changes its place with every change. */
async function rewrite(
  { sql, on }: Omit<Tools, 'columns'>,
  table: string,
  kinds: readonly (readonly [string, ColumnKind])[],
  row: SqlRow,
): Promise<'changed' | 'left' | 'current'> {
  const all = kinds.flatMap(([column, kind]) => changeOf(on, column, kind, row[column]))
  const changes = all.filter(({ after }) => after !== null)
  if (changes.length === 0) return all.length === 0 ? 'current' : 'left'
  const place = sql.dialect.rowPlace
  const same = changes.map(({ column }) => `${column} = ?`)
  // A row that was changed in between was written with the current key.
  await sql.query(
    `UPDATE ${table} SET ${same.join(', ')} WHERE ${place.column} = ${place.value} AND ${same.join(' AND ')}`,
    [
      ...changes.map(({ after }) => after),
      place.valueOf(String(row['onceonly_place'])),
      ...changes.map(({ before }) => before),
    ],
  )
  return all.length === changes.length ? 'changed' : 'left'
}

/** In the order of their names. Names become part of statements: only plain ones are accepted. */
async function existing(sql: SqlSeam, tables: readonly string[]): Promise<string[]> {
  const bad = tables.find((table) => !/^[a-z_][a-z0-9_]*$/.test(table))
  if (bad !== undefined) throw new OnceError('bad_option', `\`${bad}\` is no name of a table.`)
  const rows = await sql.query<{ readonly name: string }>(sql.dialect.tableNames)
  const found = new Set(rows.map(({ name }) => name))
  return tables.filter((table) => found.has(table)).toSorted()
}
