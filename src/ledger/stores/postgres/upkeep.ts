import type { Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { fenceOfCursor } from '../../store/sql/list.ts'
import type { RecordTables } from '../../store/sql/tables.ts'
import { createForgetTallies, createTally } from '../../store/sql/tallies.ts'

export function createUpkeep(tables: RecordTables): Upkeep {
  const sweep = sweepStatement(tables)
  const forgetTallies = createForgetTallies(tables)
  return {
    sweep: async (cursor, limit, call) => {
      const after = fenceOfCursor(cursor)
      return await tables.write(call, async (query) => {
        const [row] = await query(sweep, [after, limit])
        const looked = Number(row?.['looked'])
        const end = looked < limit
        if (end) await forgetTallies(query)
        return { cursor: end ? null : String(row?.['last']), looked, removed: Number(row?.['removed']) }
      })
    },
    tally: createTally(tables),
  }
}

/**
 * One step: a bounded piece of the table along the fence, which is about the order on disk. What is due is locked
 * without waiting and looked at again in its newest version, because a claim may have begun a new life of it meanwhile:
 * then it stands in another place, and stays.
 *
 * Rows are found by their place on disk. By their ids it took three times as long: two looks into a large index for each.
 *
 * Past its end nothing of a record is kept; past replay only the fact that the key was used.
 */
function sweepStatement({ records, now }: RecordTables): string {
  const replayable = `state IN (${stateCode.succeeded}, ${stateCode.failed_terminal})`
  return `
    WITH moment AS MATERIALIZED (SELECT ${now} AS now),
    page AS MATERIALIZED (
      SELECT ctid AS place, fence, gone_at <= now AS gone, expires_at <= now AND ${replayable}
        AND (outcome IS NOT NULL OR pointer IS NOT NULL OR detail IS NOT NULL) AS over
      FROM ${records}, moment WHERE fence > ?::bigint ORDER BY fence LIMIT ?::int
    ),
    due AS MATERIALIZED (
      SELECT r.ctid AS place FROM ${records} AS r
      WHERE r.ctid = ANY (ARRAY(SELECT place FROM page WHERE gone OR over)) FOR UPDATE SKIP LOCKED
    ),
    removed AS (
      DELETE FROM ${records} AS r USING moment
      WHERE r.ctid = ANY (ARRAY(SELECT place FROM due)) AND r.gone_at <= now
      RETURNING 1
    ),
    emptied AS (
      UPDATE ${records} AS r SET outcome = NULL, pointer = NULL, detail = NULL FROM moment
      WHERE EXISTS (SELECT 1 FROM page WHERE over AND NOT coalesce(gone, false))
        AND r.ctid = ANY (ARRAY(SELECT place FROM due)) AND r.gone_at > now AND r.expires_at <= now AND r.${replayable}
    )
    SELECT (SELECT count(*) FROM page) AS looked, (SELECT max(fence) FROM page) AS last,
      (SELECT count(*) FROM removed) AS removed`
}
