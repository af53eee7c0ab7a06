import type { RecordId } from '../../core/identity.ts'
import type { Remembered } from '../../store/remembered.ts'
import { stateCode } from '../../store/row.ts'
import { nowSql } from './clock-sql.ts'
import type { Connection } from './connection.ts'
import type { Names } from './names.ts'
import { plannedOn } from './statement.ts'

/**
 * PostgreSQL does not have what it acknowledged to this process: a standby was promoted that did not follow synchronously, or
 * an older state was restored under a running process.
 */
export interface RecordsLost {
  readonly kind: 'records_lost'
  /** Ids of records that are missing, or older than acknowledged. */
  readonly ids: readonly RecordId[]
  /** How many of the latest records of this process were looked for: there may be more that it does not remember. */
  readonly of: number
}

/** Null when everything is there. Asked whenever a connection was lost, because the next one may lead to another server. */
export async function findLost(
  connection: Connection,
  names: Names,
  remembered: Remembered,
): Promise<RecordsLost | null> {
  const known = remembered.all()
  if (known.length === 0) return null
  const text = `
    SELECT replace(r.id::text, '-', '') AS id, r.fence, r.state, moment.now
    FROM (SELECT ${nowSql(names)} AS now) AS moment LEFT JOIN ${names.records} AS r ON r.id = ANY ($1::uuid[])`
  const rows = await plannedOn(connection).run({ name: '', text }, [known.map(({ id }) => id)])
  const present = rows
    .filter((row) => row['id'] !== null)
    .map((row) => ({ id: String(row['id']), fence: Number(row['fence']), open: isOpen(Number(row['state'])) }))
  const ids = remembered.lost(present, Number(rows[0]?.['now']))
  return ids.length === 0 ? null : { kind: 'records_lost', ids, of: known.length }
}

function isOpen(state: number): boolean {
  return state === stateCode.reserved || state === stateCode.running
}
