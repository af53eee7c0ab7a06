import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { RecordRow } from '../../store/row.ts'
import type { DecideRound, LockedRecord, Snapshot } from '../../store/sql/decide.ts'
import { createDecideRound } from '../../store/sql/decide.ts'
import type { TableQuery } from '../../store/sql/tables.ts'
import { recordColumns, recordOf, recordSql } from '../../store/sql/tables.ts'
import { NOW } from './clock-sql.ts'
import { BY_KEY, mariadb } from './dialect.ts'

const COLUMNS = recordSql({ dialect: mariadb }, 'r')
const LISTED = `${mariadb.recordsOf({ id: 'id' })} STRAIGHT_JOIN onceonly_records AS r ${BY_KEY} ON r.id = x.id`
const written = recordColumns.map((column) => `\`${column}\``)
const given = recordColumns.map((column) => (column === 'id' ? 'UNHEX(?)' : '?')).join(', ')
const SAME_LIFE = 'onceonly_records.incarnation = VALUES(incarnation)'

/** The counts first: an assignment sees what those before it have changed, and they compare the incarnations. */
const RENEWED = [
  ...['replays', 'conflicts', 'in_progress'].map(
    (column) => `${column} = IF(${SAME_LIFE}, onceonly_records.${column}, 0)`,
  ),
  `repeated_at = IF(${SAME_LIFE}, onceonly_records.repeated_at, NULL)`,
  ...written.filter((column) => column !== '`id`').map((column) => `${column} = VALUES(${column})`),
].join(', ')

function idsJson(ids: readonly RecordId[]): string {
  return JSON.stringify(ids.map((id) => ({ id })))
}

/** Records without any lock, and the time. */
export async function readRecords(query: TableQuery, ids: readonly RecordId[]): Promise<Snapshot> {
  const rows = await query(
    `SELECT moment.now, ${COLUMNS} FROM (SELECT ${NOW} AS now) AS moment LEFT JOIN (${LISTED}) ON 1 = 1`,
    [idsJson(ids)],
  )
  const records = byId(rows.filter((row) => row['id'] !== null).map(recordOf))
  return { now: Number(rows[0]?.['now']), records: ids.map((id) => records.get(id) ?? null) }
}

export const decideRound: DecideRound<TableQuery> = createDecideRound<TableQuery>({
  lock: async (query, ids, skipLocked): Promise<readonly LockedRecord[]> => {
    // Rows are locked in the order of the list, and in one order no two transactions wait for each other in a circle.
    const list = idsJson(ids.toSorted())
    const found = await query(
      `SELECT ${COLUMNS} FROM ${LISTED} ORDER BY r.id FOR UPDATE ${skipLocked ? 'SKIP LOCKED' : ''}`,
      [list],
    )
    const held = byId(found.map(recordOf))
    const present = skipLocked ? await presentAmong(query, list) : new Set<unknown>()
    // After the locks: a lease must be judged by the time after the wait.
    const moments = await query(
      `SELECT ${NOW} AS now, NEXTVAL(onceonly_fences) AS fence FROM ${mariadb.recordsOf({ id: 'text' })}`,
      [list],
    )
    return ids.map((id, index) => {
      const record = held.get(id) ?? null
      if (record === null && present.has(id)) return { kind: 'locked' }
      const { now, fence } = moments[index] ?? {}
      return { kind: 'held', record, now: Number(now), nextFence: Number(fence) }
    })
  },
  insert: async (query, rows) => {
    // A row of a twin keeps its fence, and a fence is granted once.
    const inserted = await query(
      `INSERT INTO onceonly_records (${written.join(', ')}) VALUES ${placesFor(rows)}
       ON DUPLICATE KEY UPDATE id = onceonly_records.id RETURNING LOWER(HEX(id)) AS id, fence, claim_id`,
      valuesOf(rows),
    )
    const ours = new Map(rows.map((row) => [row.id, row]))
    const isOurs = ({ id, fence, claim_id: claimId }: (typeof inserted)[number]) => {
      const row = ours.get(id as string)
      return row !== undefined && row.fence === Number(fence) && row.claim_id === claimId
    }
    return new Set(inserted.filter(isOurs).map(({ id }) => id as string))
  },
  update: async (query, rows) => {
    await query(
      `INSERT INTO onceonly_records (${written.join(', ')}) VALUES ${placesFor(rows)} ON DUPLICATE KEY UPDATE ${RENEWED}`,
      valuesOf(rows),
    )
  },
  leaveUnknowns: async (query, records) => {
    const fences = records.map(({ fence }) => fence)
    await query(`DELETE FROM onceonly_unknowns WHERE fence IN (${fences.map(() => '?').join(', ')})`, fences)
  },
  enterUnknowns: async (query, records) => {
    const places = records.map(() => '(?, UNHEX(?))').join(', ')
    await query(
      `INSERT INTO onceonly_unknowns (fence, id) VALUES ${places} ON DUPLICATE KEY UPDATE id = VALUES(id)`,
      records.flatMap(({ fence, id }) => [fence, id]),
    )
  },
})

/** Which of the ids have a row at all, whether it is locked or not. */
async function presentAmong(query: TableQuery, list: string): Promise<ReadonlySet<unknown>> {
  const rows = await query(`SELECT LOWER(HEX(r.id)) AS id FROM ${LISTED}`, [list])
  return new Set(rows.map(({ id }) => id))
}

function byId(records: readonly LedgerRecord[]): ReadonlyMap<RecordId, LedgerRecord> {
  return new Map(records.map((record) => [record.id, record]))
}

function placesFor(rows: readonly RecordRow[]): string {
  return rows.map(() => `(${given})`).join(', ')
}

function valuesOf(rows: readonly RecordRow[]): (string | number | null)[] {
  return rows.flatMap((row) => recordColumns.map((column) => row[column]))
}
