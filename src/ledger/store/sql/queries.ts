import { FOREVER, limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Page, Queries, RecordFilter, StateCounts } from '../port.ts'
import { stateCode } from '../row.ts'
import { createStateCounts, visible, whereOf } from './filter.ts'
import { createLapsedScan } from './lapsed.ts'
import { createList, foreignCursor } from './list.ts'
import type { RecordTables, TableQuery } from './tables.ts'
import { numberOf, recordOf, recordSql, viewOf, viewSql } from './tables.ts'
import { createBusiest } from './tallies.ts'

/** The questions of operators and of the reconciler, on every SQL store. */
export function createSqlQueries(tables: RecordTables): Queries {
  const { dialect, records, now } = tables
  const list = createList(tables)
  const lapsed = createLapsedScan(tables)
  const busiest = createBusiest(tables)
  const get = `SELECT moment.now, ${viewSql(tables, 'r')}
    FROM (SELECT ${now} AS now, ${dialect.place('id')} AS id) AS moment
    LEFT JOIN ${records} AS r ON ${tables.byId('moment.id')} AND ${visible(tables)}`
  return {
    get: (id, call) =>
      tables.read(call, async (query) => {
        const [row] = await query(get, [id])
        return { now: Number(row?.['now']), view: numberOf(row?.['fence']) === null ? null : viewOf(row ?? {}) }
      }),
    list: (filter, page, call) => tables.read(call, (query) => list(query, filter, page)),
    count: (filter, call) => tables.scan(call, (query) => count(tables, query, filter)),
    lapsed: (from, limit, call) => tables.read(call, (query) => lapsed(query, { from, limit, call })),
    unknowns: (page, call) => tables.read(call, (query) => unknowns(tables, query, page)),
    busiest: (since, limit, call) => tables.read(call, (query) => busiest(query, since, limit)),
  }
}

async function count(tables: RecordTables, query: TableQuery, filter: RecordFilter): Promise<StateCounts> {
  const { records, stepRows, dialect } = tables
  const where = whereOf(tables, { ...filter, ended: false })
  const counted = createStateCounts()
  const among = (rows: string) =>
    `SELECT r.state, count(*) AS found FROM ${records} AS r WHERE ${rows} ${where.text} GROUP BY r.state`
  if (!tables.countsInSteps) {
    counted.add(await query(among(''), where.values))
    return counted.counts()
  }
  const place = tables.place.column
  const big = dialect.place('bigint')
  const part = among(`r.${place} >= ${big} AND r.${place} < ${big} AND`)
  for (let from = 0; ; from += stepRows) {
    const [row] = await query(`SELECT min(${place}) AS place FROM ${records} WHERE ${place} >= ${big}`, [from])
    const first = numberOf(row?.['place'])
    if (first === null) return counted.counts()
    from = first
    counted.add(await query(part, [from, from + stepRows, ...where.values]))
  }
}

/** They are few, and the reconciler goes through all of them: newest first, or in the order of their ids. */
async function unknowns(
  tables: RecordTables,
  query: TableQuery,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null },
): Promise<Page<LedgerRecord>> {
  const { dialect, unknownsKey } = tables
  const { column, type, beyond, direction, cursors } = unknownOrders[unknownsKey]
  if (cursor !== null && !cursors.test(cursor)) throw foreignCursor()
  const most = Math.min(limit, limits.pageRows)
  const found = await query(
    `SELECT ${type === 'id' ? dialect.idText('u.id') : 'u.fence'} AS place, ${recordSql(tables, 'r')}
     FROM (SELECT * FROM ${tables.unknowns} WHERE ${column} ${beyond} ${dialect.place(type)}
       ORDER BY ${column} ${direction} LIMIT ${dialect.place('bigint')}) AS u
     LEFT JOIN ${tables.records} AS r ON ${tables.byId('u.id')} AND r.state = ${stateCode.unknown}
     ORDER BY u.${column} ${direction}`,
    [cursor ?? (type === 'id' ? '' : FOREVER), most],
  )
  const rows = found.filter((row) => row['fence'] !== null).map(recordOf)
  return { rows, cursor: found.length < most ? null : String(found.at(-1)?.['place']) }
}

const unknownOrders = {
  fence: { column: 'fence', type: 'bigint', beyond: '<', direction: 'DESC', cursors: /^\d{1,16}$/ },
  id: { column: 'id', type: 'id', beyond: '>', direction: 'ASC', cursors: /^[0-9a-f]{32}$/ },
} as const
