import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import type { RecordRow } from '../../store/row.ts'
import { toRow } from '../../store/row.ts'
import { nowSql } from './clock-sql.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import type { Executor, Statement } from './statement.ts'
import { columnsOf, plainId, recordColumns, recordOf, text, wholeMs } from './statement.ts'

/**
 * `again`: a row appeared during the decision. `locked`: another transaction holds the row, and the caller does not
 * wait.
 */
export type Decided = AppliedDecision | 'again' | 'locked'

export interface Round {
  readonly decided: readonly Decided[]
  readonly woken: readonly string[]
}

/**
 * The slow path, for whatever the single statements leave over. It runs inside an open transaction: lock the rows in
 * the order of their ids, read the clock, let `transition` itself decide, write back what it says.
 *
 * A row that is not there cannot be locked. If a twin inserts it meanwhile, ours is not inserted, and that request has
 * to go another round.
 */
export type DecideRound = (on: Executor, requests: readonly Request[], skipLocked: boolean) => Promise<Round>

interface Change {
  readonly index: number
  readonly before: LedgerRecord | null
  readonly after: LedgerRecord
}

export function createDecide(names: Names): DecideRound {
  const statements = {
    wait: lockRecords(names, false),
    skip: lockRecords(names, true),
    insert: insertRecords(names),
    update: updateRecords(names),
    ...unknownsOf(names),
  }

  return async (on, requests, skipLocked) => {
    const decided: Decided[] = []
    const changes: Change[] = []
    const ids = requests.map((request) => request.id)
    const rows = await on.run(skipLocked ? statements.skip : statements.wait, [ids])
    for (const [index, request] of requests.entries()) {
      const row = rows[index] ?? {}
      const before = row['id'] === null ? null : recordOf(row)
      if (before === null && row['present'] === 't') {
        decided.push('locked')
        continue
      }
      const now = Number(row['now'])
      // A record that outlived a reset may carry a larger fence than the sequence; it must still grow.
      const fence = Math.max(Number(row['next_fence']), (before?.fence ?? 0) + 1)
      const { record, decision } = transition(before, request, { now, fence })
      if (record !== null && record !== before) changes.push({ index, before, after: record })
      decided.push({ record, decision, now })
    }
    const written = await write(on, changes)
    for (const { index } of changes) if (!written.has(index)) decided[index] = 'again'
    const kept = changes.filter(({ index }) => written.has(index))
    return { decided, woken: await tell(on, kept) }
  }

  /** Answers the places of those that are in the table now. */
  async function write(on: Executor, changes: readonly Change[]): Promise<Set<number>> {
    const fresh = changes.filter(({ before }) => before === null)
    const held = changes.filter(({ before }) => before !== null)
    const written = new Set(held.map(({ index }) => index))
    if (fresh.length > 0) {
      const inserted = await on.run(statements.insert, [rowsOf(fresh)])
      const ids = new Set(inserted.map((row) => plainId(text(row, 'id'))))
      for (const { index, after } of fresh) if (ids.has(after.id)) written.add(index)
    }
    if (held.length > 0) await on.run(statements.update, [rowsOf(held)])
    return written
  }

  /**
   * Keeps the list of unknowns in step, and answers whose waiters are to be woken when the transaction has committed.
   */
  async function tell(on: Executor, changes: readonly Change[]): Promise<string[]> {
    const left = changes.flatMap(({ before, after }) => (isUnknown(before) && !isUnknown(after) ? [before.fence] : []))
    const entered = changes.filter(({ before, after }) => isUnknown(after) && !isUnknown(before))
    const woken = changes.flatMap(({ before, after }) => (wakesWaiters(before, after) ? [after.id] : []))
    if (left.length > 0) await on.run(statements.leave, [left])
    if (entered.length > 0) {
      await on.run(statements.enter, [entered.map(({ after }) => after.fence), entered.map(({ after }) => after.id)])
    }
    return woken
  }
}

function isUnknown(record: LedgerRecord | null): record is LedgerRecord & { state: 'unknown' } {
  return record?.state === 'unknown'
}

function rowsOf(changes: readonly Change[]): string {
  return JSON.stringify(changes.map(({ after }) => wholeTimes(toRow(after))))
}

function wholeTimes(row: RecordRow): RecordRow {
  return { ...row, due_at: row.due_at === null ? null : wholeMs(row.due_at) }
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

/** Rows travel as JSON here: it carries every column by name, and this path is rare. */
function insertRecords(names: Names): Statement {
  return {
    name: 'onceonly_insert',
    text: `
      INSERT INTO ${names.records} (${recordColumns.join(', ')})
      SELECT ${columnsOf('u')} FROM json_populate_recordset(NULL::${names.records}, $1::json) AS u
      ON CONFLICT (id) DO NOTHING
      RETURNING id`,
  }
}

/** A new incarnation is a new record to those who count. */
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
      FROM json_populate_recordset(NULL::${names.records}, $1::json) AS u
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
