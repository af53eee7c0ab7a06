import type { InProgress, Pointer } from '../../core/record.ts'
import type { SettleRequest } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import { keptCode, pointerText, policyText, stateCode } from '../../store/row.ts'
import { nowSql } from './clock.ts'
import type { Answers } from './insert-claims.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import type { Executor, Statement, TextRow } from './statement.ts'
import { awaitedCode, plainId, text, wholeMs } from './statement.ts'

/**
 * The outcome of an attempt that still holds its record: fence and claim id are those of the grant, and nothing unusual
 * has happened to it. Whatever else a settle may meet is left to the slow path.
 *
 * Those who wait are told in the same statement. A notification takes a lock that all committing notifiers share, so it
 * is sent only for rows that somebody awaits.
 */
export interface SettleRunning {
  (on: Executor, requests: readonly SettleRequest[]): Promise<{ answers: Answers; woken: string[] }>
}

/** Unknown outcomes have a side table to keep, which is not worth a fast path. */
export function settlesPlainly({ to }: SettleRequest): boolean {
  return to.state !== 'unknown'
}

export function createSettle(names: Names): SettleRunning {
  const one = oneSettle(names)
  const many = manySettles(names)
  return async (on, requests) => {
    const [first] = requests
    if (first === undefined) return { answers: [], woken: [] }
    if (requests.length === 1) {
      const [row] = await on.run(one, valuesOf(first))
      const woken = row !== undefined && wasAwaited(row) ? [first.id] : []
      return { answers: [row === undefined ? null : settled(first, row)], woken }
    }
    const rows = new Map((await on.run(many, columnsOf(requests))).map((row) => [plainId(text(row, 'id')), row]))
    const woken: string[] = []
    const answers = requests.map((request) => {
      const row = rows.get(request.id)
      if (row === undefined) return null
      if (wasAwaited(row)) woken.push(request.id)
      return settled(request, row)
    })
    return { answers, woken }
  }
}

/** What both statements do to a row `r`, given the new values `u` and the time. */
function change(names: Names, u: Record<'state' | 'kept' | 'outcome' | 'pointer' | 'retryMs', string>, now: string) {
  const part = (place: number) => `split_part(r.policy, ':', ${place})`
  const from = `CASE ${part(5)} WHEN 'claimed' THEN r.claimed_at ELSE ${now} END`
  const retained = `greatest(${now}, ${from} + ${part(2)}::bigint)`
  const retryable = `${u.state} = ${stateCode.failed_retryable}`
  return {
    set: `
        state = ${u.state},
        kept = ${u.kept},
        outcome = ${u.outcome},
        pointer = coalesce(${u.pointer}, r.pointer),
        settled_at = ${now},
        due_at = CASE WHEN ${retryable} THEN ${now} + ${u.retryMs} END,
        expires_at = ${retained},
        gone_at = ${retained} + CASE WHEN ${retryable} THEN 0 ELSE ${part(3)}::bigint END,
        awaited = r.awaited * ${awaitedCode.was}`,
    // The rest of the grant must be the row's too, so that the answer can be made from the grant. As one text it costs
    // one value; to send the row back would cost more than to settle it.
    grant: `r.incarnation || ':' || r.attempts || ':' || r.claimed_at || ':' || r.policy || ':' || r.fingerprint`,
    guard: `r.state IN (${stateCode.reserved}, ${stateCode.running}) AND r.detail IS NULL`,
    returning: `r.settled_at AS now, r.pointer, CASE WHEN r.awaited = ${awaitedCode.was}
        THEN pg_notify(${quoteText(names.channel)}, replace(r.id::text, '-', '')) END AS told`,
  }
}

function oneSettle(names: Names): Statement {
  const values = { state: '$4::smallint', kept: '$5::smallint', outcome: '$6', pointer: '$7', retryMs: '$8::bigint' }
  const { set, grant, guard, returning } = change(names, values, 'm.now')
  return {
    name: 'onceonly_settle',
    text: `
      UPDATE ${names.records} AS r SET ${set}
      FROM (SELECT ${nowSql(names)} AS now) AS m
      WHERE r.id = $1::uuid AND r.fence = $2::bigint AND r.claim_id = $3 AND ${grant} = $9 AND ${guard}
      RETURNING ${returning}`,
  }
}

function manySettles(names: Names): Statement {
  const values = { state: 'u.state', kept: 'u.kept', outcome: 'u.outcome', pointer: 'u.pointer', retryMs: 'u.retry_ms' }
  const { set, grant, guard, returning } = change(names, values, '(SELECT now FROM moment)')
  return {
    name: 'onceonly_settles',
    text: `
      WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now)
      UPDATE ${names.records} AS r SET ${set}
      FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::smallint[], $5::smallint[], $6::text[], $7::text[],
        $8::bigint[], $9::text[]) AS u(id, fence, claim_id, state, kept, outcome, pointer, retry_ms, granted)
      WHERE r.id = u.id AND r.fence = u.fence AND r.claim_id = u.claim_id AND ${grant} = u.granted AND ${guard}
      RETURNING r.id, ${returning}`,
  }
}

function valuesOf({ id, grant, to, pointer }: SettleRequest): unknown[] {
  if (to.state === 'unknown') throw new TypeError('An unknown outcome takes the slow path.')
  return [
    id,
    grant.fence,
    grant.claimId,
    stateCode[to.state],
    keptCode(to.outcome.kept),
    to.outcome.data,
    pointerText(pointer),
    to.state === 'failed_retryable' ? wholeMs(to.retryAfterMs) : 0,
    `${grant.incarnation}:${grant.attempt}:${grant.claimedAt}:${policyText(grant.policy)}:${grant.fingerprint}`,
  ]
}

function columnsOf(requests: readonly SettleRequest[]): unknown[][] {
  const rows = requests.map(valuesOf)
  return Array.from({ length: 9 }, (_, column) => rows.map((row) => row[column]))
}

/** The notification was sent, so somebody waited. */
function wasAwaited(row: TextRow): boolean {
  return row['told'] !== null
}

/** The record as it was: the grant, with the pointer that the row has. `transition` says what it became. */
function settled(request: SettleRequest, row: TextRow): AppliedDecision {
  const { grant } = request
  const now = Number(row['now'])
  const attached = row['pointer'] ?? null
  const before: InProgress = {
    state: 'in_progress',
    id: request.id,
    identity: grant.identity,
    fingerprint: grant.fingerprint,
    incarnation: grant.incarnation,
    fence: grant.fence,
    claimId: grant.claimId,
    attempts: grant.attempt,
    claimedAt: grant.claimedAt,
    pointer: attached === null ? null : (JSON.parse(attached) as Pointer),
    policy: grant.policy,
    awaited: wasAwaited(row),
    history: [],
    started: true,
    leaseUntil: grant.leaseUntil,
  }
  const { record, decision } = transition(before, request, { now, fence: grant.fence })
  return { record, decision, now }
}
