import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import { nowSql } from './clock-sql.ts'
import type { Answers } from './insert-claims.ts'
import type { Names } from './names.ts'
import type { Executor, Statement } from './statement.ts'
import { columnsOf, recordOf } from './statement.ts'

export interface Snapshot {
  readonly now: number
  /** In the order of the ids; expired records as they are stored. */
  readonly records: readonly (LedgerRecord | null)[]
}

export type ReadRecords = (on: Executor, ids: readonly RecordId[]) => Promise<Snapshot>

/** Records without any lock, and the time. One row for each id that was asked for, in that order, and one for none. */
export function createRead(names: Names): ReadRecords {
  const statement: Statement = {
    name: 'onceonly_read',
    text: `
      WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now)
      SELECT m.now, ${columnsOf('r')}
      FROM moment AS m
      LEFT JOIN unnest($1::uuid[]) WITH ORDINALITY AS asked(id, place) ON true
      LEFT JOIN ${names.records} AS r ON r.id = asked.id
      ORDER BY asked.place`,
  }
  return async (on, ids) => {
    const rows = await on.run(statement, [ids])
    const records = ids.map((_, index) => {
      const row = rows[index]
      return row === undefined || row['id'] === null ? null : recordOf(row)
    })
    return { now: Number(rows[0]?.['now']), records }
  }
}

/**
 * Replays, conflicts, "in progress", stale holders: most of what meets an existing record leaves it alone. Such an
 * answer needs no lock, because it is true at the moment of the read.
 */
export async function answerUnchanged(read: ReadRecords, on: Executor, requests: readonly Request[]): Promise<Answers> {
  if (requests.length === 0) return []
  const { now, records } = await read(
    on,
    requests.map((request) => request.id),
  )
  return requests.map((request, index) => {
    const stored = records[index] ?? null
    // No fence is taken here: an answer that would use one changes the record, and is decided under a lock.
    const { record, decision } = transition(stored, request, { now, fence: stored?.fence ?? 0 })
    return record === stored ? { record, decision, now } : null
  })
}
