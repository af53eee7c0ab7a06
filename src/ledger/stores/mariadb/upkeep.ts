import type { Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { fenceOfCursor } from '../../store/sql/list.ts'
import type { RecordTables } from '../../store/sql/tables.ts'
import { createForgetTallies, createTally } from '../../store/sql/tallies.ts'
import { NOW } from './clock-sql.ts'
import { BY_KEY } from './dialect.ts'

const REPLAYABLE = `state IN (${stateCode.succeeded}, ${stateCode.failed_terminal})`
const HAS_CONTENT = '(outcome IS NOT NULL OR pointer IS NOT NULL OR detail IS NOT NULL)'
const PAGE = `SELECT r.id, r.fence, COALESCE(r.gone_at <= ${NOW}, 0) AS gone,
    COALESCE(r.expires_at <= ${NOW} AND r.${REPLAYABLE} AND ${HAS_CONTENT}, 0) AS spent
  FROM onceonly_records AS r WHERE r.fence > ? ORDER BY r.fence LIMIT ?`
const LOOK = `SELECT COUNT(*) AS looked, MAX(fence) AS last, COALESCE(SUM(gone OR spent), 0) AS due FROM (${PAGE}) AS page`
/** Due rows are locked without waiting, in their newest version: a claim may have begun a new life of one meanwhile. */
const DUE = `SELECT LOWER(HEX(r.id)) AS id, COALESCE(r.gone_at <= ${NOW}, 0) AS gone FROM onceonly_records AS r
  WHERE r.fence > ? AND r.fence <= ? AND (r.gone_at <= ${NOW} OR r.expires_at <= ${NOW} AND r.${REPLAYABLE} AND ${HAS_CONTENT})
  FOR UPDATE SKIP LOCKED`

/** Past its end nothing of a record is kept; past replay only the fact that the key was used. */
export function createUpkeep(tables: RecordTables): Upkeep {
  const forgetTallies = createForgetTallies(tables)
  const listed = tables.dialect.recordsOf({ id: 'id' })
  const remove = `DELETE r FROM ${listed} STRAIGHT_JOIN onceonly_records AS r ${BY_KEY} ON r.id = x.id`
  const nothing = { outcome: 'NULL', pointer: 'NULL', detail: 'NULL' }
  const empty = tables.dialect.updateFrom('onceonly_records AS r', nothing, listed, 'r.id = x.id')
  return {
    sweep: async (cursor, limit, call) => {
      const after = fenceOfCursor(cursor)
      return await tables.write(call, async (query) => {
        const [page] = await query(LOOK, [after, limit])
        const looked = Number(page?.['looked'])
        const last = Number(page?.['last'])
        let removed = 0
        if (Number(page?.['due']) > 0) {
          const due = await query(DUE, [after, last])
          const gone = due.filter((row) => Number(row['gone']) === 1).map(({ id }) => ({ id }))
          const over = due.filter((row) => Number(row['gone']) !== 1).map(({ id }) => ({ id }))
          removed = gone.length
          if (gone.length > 0) await query(remove, [JSON.stringify(gone)])
          if (over.length > 0) await query(empty, [JSON.stringify(over)])
        }
        const end = looked < limit
        if (end) await forgetTallies(query)
        return { cursor: end ? null : String(last), looked, removed }
      })
    },
    tally: createTally(tables),
  }
}
