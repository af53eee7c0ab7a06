import { OnceError } from '../../core/errors.ts'
import { FOREVER, limits } from '../../core/limits.ts'
import type { Page, RecordFilter, RecordView } from '../port.ts'
import { filterColumns, whereOf } from './filter.ts'
import type { RecordTables, StoredRow, TableQuery, TableValue } from './tables.ts'
import { viewOf, viewSql } from './tables.ts'

/** Fences grow with time, so their order is the order of claims. Two records share one only after a store was reset. */
interface Position {
  readonly fence: number
  readonly place: string | number
}

export interface ListPage {
  readonly limit: number
  readonly cursor: string | null
}

export type ListRecords = (query: TableQuery, filter: RecordFilter, page: ListPage) => Promise<Page<RecordView>>

/**
 * Newest first, along the index on the fence. A step looks at a bounded number of rows, and a call at a bounded number of
 * steps; only a page that is not full has to find out where the look ended.
 */
export function createList(tables: RecordTables): ListRecords {
  const { records, dialect, stepRows } = tables
  const place = tables.place.column
  const given = dialect.place(tables.place.type)
  const fence = dialect.place('bigint')
  const shown = tables.place.type === 'id' ? dialect.idText : (column: string) => column
  const order = (alias: string) => `ORDER BY ${alias}.fence DESC, ${alias}.${place} DESC`
  const fromHere = `r.fence <= ${fence} AND (r.fence < ${fence} OR r.${place} < ${given}) ${order('r')}`
  const end = `SELECT r.fence, ${shown(`r.${place}`)} AS place FROM ${records} AS r WHERE ${fromHere} LIMIT 1 OFFSET ${stepRows - 1}`
  const before = ({ fence: at, place: tie }: Position): TableValue[] => [at, at, tie]

  /** The filter runs on the small columns; whole rows are read only where it fits. */
  function matching(query: TableQuery, filter: RecordFilter, from: Position, limit: number) {
    const where = whereOf(tables, filter)
    const looked = `SELECT r.fence, r.${place}, ${filterColumns(filter, place)} FROM ${records} AS r WHERE ${fromHere} LIMIT ${stepRows}`
    const fits = `SELECT r.fence, r.${place} FROM (${looked}) AS r WHERE ${where.text} ${order('r')} LIMIT ${dialect.place('bigint')}`
    const text = `SELECT ${viewSql(tables, 'r')}, ${shown(`k.${place}`)} AS place
      FROM (${fits}) AS k ${dialect.orderedJoin} ${records} AS r ON r.${place} = k.${place} ${order('k')}`
    return query(text, [...before(from), ...where.values, limit])
  }

  return async (query, filter, { limit, cursor }) => {
    const wanted = Math.max(1, Math.min(limit, limits.pageRows))
    const rows: RecordView[] = []
    let position = cursor === null ? startOf(tables) : parsed(cursor, tables)
    for (let looked = 0; ; ) {
      const found = await matching(query, filter, position, wanted - rows.length)
      rows.push(...found.map(viewOf))
      const last = found.at(-1)
      if (rows.length >= wanted && last !== undefined) return { rows, cursor: written(last) }
      const [next] = await query(end, before(position))
      if (next === undefined) return { rows, cursor: null }
      looked += stepRows
      if (looked >= limits.scanRows) return { rows, cursor: written(next) }
      position = parsed(written(next), tables)
    }
  }
}

const LAST_ID = 'f'.repeat(32)

function startOf({ place }: RecordTables): Position {
  return { fence: FOREVER, place: place.type === 'id' ? LAST_ID : FOREVER }
}

function written({ fence, place }: StoredRow): string {
  return `${String(fence)}.${String(place)}`
}

function parsed(cursor: string, { place }: RecordTables): Position {
  const [, fence, tie] = /^(\d{1,16})\.([0-9a-f]{1,32})$/.exec(cursor) ?? []
  if (fence === undefined || tie === undefined) throw foreignCursor()
  if (place.type === 'id') {
    if (tie.length !== LAST_ID.length) throw foreignCursor()
    return { fence: Math.min(Number(fence), FOREVER), place: tie }
  }
  if (!/^\d{1,16}$/.test(tie)) throw foreignCursor()
  return { fence: Math.min(Number(fence), FOREVER), place: Math.min(Number(tie), FOREVER) }
}

/** Of a sweep, whose cursor is the last fence that it has seen. */
export function fenceOfCursor(cursor: string | null): number {
  if (cursor === null) return 0
  if (/^\d{1,16}$/.test(cursor)) return Number(cursor)
  throw foreignCursor()
}

export function foreignCursor(): OnceError {
  return new OnceError('bad_option', 'The `cursor` is not one of this store.')
}
