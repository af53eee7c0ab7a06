import type { RecordId } from '../../core/identity.ts'
import type { RecordRow } from '../../store/row.ts'
import type { DecideRound, LockedRecord } from '../../store/sql/decide.ts'
import { createDecideRound } from '../../store/sql/decide.ts'
import { columnsOf, recordColumns, recordOf } from '../../store/sql/tables.ts'
import { nowSql } from './clock-sql.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import type { Executor, Statement, TextRow } from './statement.ts'
import { plainId, text } from './statement.ts'

export function createDecide(names: Names): DecideRound<Executor> {
  const wait = lockRecords(names, false)
  const skip = lockRecords(names, true)
  const insert = insertRecords(names)
  const update = updateRecords(names)
  const { enter, leave } = unknownsOf(names)
  return createDecideRound<Executor>({
    lock: async (on, ids, skipLocked) => {
      const rows = await on.run(skipLocked ? skip : wait, [ids])
      return ids.map((_: RecordId, index) => lockedOf(rows[index] ?? {}))
    },
    // Rows travel as JSON here: it carries every column by name, and this path is rare.
    insert: async (on, rows: readonly RecordRow[]) => {
      const inserted = await on.run(insert, [JSON.stringify(rows)])
      return new Set(inserted.map((row) => plainId(text(row, 'id'))))
    },
    update: async (on, rows) => void (await on.run(update, [JSON.stringify(rows)])),
    leaveUnknowns: async (on, records) => void (await on.run(leave, [records.map(({ fence }) => fence)])),
    enterUnknowns: async (on, records) => {
      await on.run(enter, [records.map(({ fence }) => fence), records.map(({ id }) => id)])
    },
  })
}

function lockedOf(row: TextRow): LockedRecord {
  if (row['id'] === null && row['present'] === 't') return { kind: 'locked' }
  const record = row['id'] === null ? null : recordOf(row)
  return { kind: 'held', record, now: Number(row['now']), nextFence: Number(row['next_fence']) }
}

/**
 * Time and fence stand in the outer select: a row's values are computed when it comes out of the join, and it comes out
 * only after the CTE has locked it. A lock may be waited for, and a lease must be judged by the time after the wait.
 */
function lockRecords(names: Names, skipLocked: boolean): Statement {
  return {
    name: skipLocked ? 'onceonly_lock_free' : 'onceonly_lock',
    text: `
      WITH held AS MATERIALIZED (
        SELECT ${columnsOf('r')} FROM ${names.records} AS r
        WHERE r.id = ANY ($1::uuid[])
        ORDER BY r.id FOR UPDATE ${skipLocked ? 'SKIP LOCKED' : ''}
      )
      SELECT ${columnsOf('held')}, ${nowSql(names)} AS now, nextval(${quoteText(names.fences)}) AS next_fence,
        ${skipLocked ? `EXISTS (SELECT 1 FROM ${names.records} AS r WHERE r.id = asked.id)` : 'false'} AS present
      FROM unnest($1::uuid[]) WITH ORDINALITY AS asked(id, place)
      LEFT JOIN held ON held.id = asked.id
      ORDER BY asked.place`,
  }
}

function insertRecords(names: Names): Statement {
  return {
    name: 'onceonly_insert',
    text: `
      INSERT INTO ${names.records} (${recordColumns.join(', ')})
      SELECT ${columnsOf('u')} FROM json_populate_recordset(NULL::${names.records}, $1::text::json) AS u
      ON CONFLICT (id) DO NOTHING
      RETURNING id`,
  }
}

function updateRecords(names: Names): Statement {
  const set = recordColumns.filter((column) => column !== 'id').map((column) => `${column} = u.${column}`)
  const sameLife = 'coalesce(r.incarnation, r.fence) = u.incarnation'
  return {
    name: 'onceonly_update',
    text: `
      UPDATE ${names.records} AS r SET ${set.join(', ')},
        replays = CASE WHEN ${sameLife} THEN r.replays ELSE 0 END,
        conflicts = CASE WHEN ${sameLife} THEN r.conflicts ELSE 0 END,
        in_progress = CASE WHEN ${sameLife} THEN r.in_progress ELSE 0 END,
        repeated_at = CASE WHEN ${sameLife} THEN r.repeated_at END
      FROM json_populate_recordset(NULL::${names.records}, $1::text::json) AS u
      WHERE r.id = u.id`,
  }
}

function unknownsOf(names: Names): Record<'enter' | 'leave', Statement> {
  return {
    enter: {
      name: 'onceonly_unknown_enter',
      text: `INSERT INTO ${names.unknowns} (fence, id) SELECT * FROM unnest($1::bigint[], $2::uuid[])
             ON CONFLICT (fence) DO UPDATE SET id = excluded.id`,
    },
    leave: {
      name: 'onceonly_unknown_leave',
      text: `DELETE FROM ${names.unknowns} WHERE fence = ANY ($1::bigint[])`,
    },
  }
}
