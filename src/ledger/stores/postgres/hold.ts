import type { AttachRequest, RenewRequest, StartRequest } from '../../core/request.ts'
import type { AppliedDecision } from '../../store/port.ts'
import { pointerText, stateCode } from '../../store/row.ts'
import type { Answers } from '../../store/sql/decide.ts'
import { wholeMs } from '../../store/sql/decide.ts'
import { columnsOf as recordColumnsOf, recordOf } from '../../store/sql/tables.ts'
import { statementNowSql } from './clock-sql.ts'
import type { Names } from './names.ts'
import type { Executor, Statement, TextRow } from './statement.ts'
import { awaitedCode, plainId, text } from './statement.ts'

export type HoldRequest = StartRequest | RenewRequest | AttachRequest

/**
 * What the holder of a running attempt may do to it: start it, renew its lease, attach a pointer. One statement for all
 * three, because heartbeats of many attempts share a batch with the starts of others. No indexed column changes.
 */
export interface HoldRunning {
  (on: Executor, requests: readonly HoldRequest[]): Promise<{ answers: Answers; woken: string[] }>
}

export function createHold(names: Names): HoldRunning {
  const statement = holdStatement(names)
  return async (on, requests) => {
    if (requests.length === 0) return { answers: [], woken: [] }
    const given = await on.run(statement, columnsOf(requests))
    const rows = new Map(given.map((row) => [plainId(text(row, 'id')), row]))
    const answers = requests.map((request) => {
      const row = rows.get(request.id)
      return row === undefined ? null : held(row)
    })
    return { answers, woken: given.filter((row) => row['news'] === 't').map((row) => plainId(text(row, 'id'))) }
  }
}

/** A pointer is news for those who wait; a longer lease is not. */
function holdStatement(names: Names): Statement {
  const now = statementNowSql(names)
  return {
    name: 'onceonly_hold',
    text: `
      UPDATE ${names.records} AS r SET
        state = CASE WHEN u.starts THEN ${stateCode.running} ELSE r.state END,
        due_at = coalesce(${now} + u.lease_ms, r.due_at),
        pointer = coalesce(u.pointer, r.pointer)
      FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[])
        AS u(id, fence, claim_id, starts, lease_ms, pointer)
      WHERE r.id = u.id AND r.fence = u.fence AND r.claim_id = u.claim_id
        AND r.state IN (${stateCode.reserved}, ${stateCode.running})
      RETURNING ${recordColumnsOf('r')}, ${now} AS now,
        u.pointer IS NOT NULL AND r.awaited = ${awaitedCode.yes} AS news`,
  }
}

function columnsOf(requests: readonly HoldRequest[]): unknown[][] {
  return [
    requests.map((request) => request.id),
    requests.map((request) => request.fence),
    requests.map((request) => request.claimId),
    requests.map((request) => request.kind === 'start'),
    requests.map((request) => (request.kind === 'attach' ? null : wholeMs(request.leaseMs))),
    requests.map((request) => (request.kind === 'attach' ? pointerText(request.pointer) : null)),
  ]
}

function held(row: TextRow): AppliedDecision {
  return { decision: { kind: 'applied', recordLost: false }, record: recordOf(row), now: Number(row['now']) }
}
