import type { InProgress, Pointer } from '../../core/record.ts'
import type { SettleRequest } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import { keptCode, pointerText, policyText, stateCode } from '../../store/row.ts'
import type { Answers } from '../../store/sql/decide.ts'
import { wholeMs } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import { statementNowSql } from './clock-sql.ts'
import { failUnlessMarked } from './mark.ts'
import type { Names } from './names.ts'
import type { Executor, Script, ScriptForm, Statement, TextRow } from './statement.ts'
import { arraysOf, awaitedCode, plainId, scriptOf, text } from './statement.ts'

/**
 * The outcome of an attempt that still holds its record: fence and claim id are those of the grant, and nothing unusual
 * has happened to it. Whatever else a settle may meet is left to the slow path.
 *
 * It also returns which of them have waiters, so that only those are notified.
 */
export interface SettleRunning {
  (on: Executor, requests: readonly SettleRequest[]): Promise<{ answers: Answers; woken: string[] }>
  /** One settle, to be sent together with other statements. It fails when there is nothing to settle. */
  readonly script: Script
  /** Null when the settle cannot be written so. */
  text(request: SettleRequest, form: ScriptForm, mark: string): string | null
  /** What the server answered to that. */
  answer(request: SettleRequest, row: unknown): AppliedDecision
}

/** Unknown outcomes have a side table to keep, and notes stand in `detail`: neither is worth a fast path. */
export function settlesPlainly({ to }: SettleRequest): boolean {
  return to.state !== 'unknown' && to.note === undefined
}

export function createSettle(names: Names): SettleRunning {
  const one = oneSettle(names)
  const script = scriptOf(settleOrFail(one))
  const many = manySettles(names)
  const settle = async (on: Executor, requests: readonly SettleRequest[]) => {
    const [first] = requests
    if (first === undefined) return { answers: [], woken: [] }
    if (requests.length === 1) {
      const [row] = await on.run(one, valuesOf(first))
      const woken = row !== undefined && wasAwaited(row) ? [first.id] : []
      return { answers: [row === undefined ? null : settled(first, row)], woken }
    }
    const given = await on.run(many, arraysOf(requests.map(valuesOf)))
    const rows = new Map(given.map((row) => [plainId(text(row, 'id')), row]))
    const woken: string[] = []
    const answers = requests.map((request) => {
      const row = rows.get(request.id)
      if (row === undefined) return null
      if (wasAwaited(row)) woken.push(request.id)
      return settled(request, row)
    })
    return { answers, woken }
  }
  return Object.assign(settle, {
    script,
    text: (request: SettleRequest, form: ScriptForm, mark: string) =>
      settlesPlainly(request) && unfit(request) === null ? script[form]([...valuesOf(request), mark]) : null,
    answer: (request: SettleRequest, row: unknown) => settled(request, row as TextRow),
  })
}

type NewValue = 'state' | 'kept' | 'outcome' | 'pointer' | 'retryMs' | 'retainMs' | 'notBefore' | 'refuseMs' | 'policy'

/**
 * What both statements do to a row `r`, given the new values. The policy is the row's own, because it must be equal to
 * be settled here; fence and claim id name the attempt, so that the rest of the grant needs no comparison.
 */
function change(names: Names, u: Readonly<Record<NewValue, string>>) {
  const now = statementNowSql(names)
  const expires = `greatest(${now} + ${u.retainMs}, ${u.notBefore})`
  return {
    set: `
        state = ${u.state},
        kept = ${u.kept},
        outcome = ${u.outcome},
        pointer = coalesce(${u.pointer}, r.pointer),
        settled_at = ${now},
        due_at = ${now} + ${u.retryMs},
        expires_at = ${expires},
        gone_at = ${expires} + ${u.refuseMs},
        awaited = r.awaited * ${awaitedCode.was}`,
    guard: `r.policy = ${u.policy} AND r.state IN (${stateCode.reserved}, ${stateCode.running}) AND r.detail IS NULL`,
    returning: `r.settled_at AS now, r.pointer, r.awaited = ${awaitedCode.was} AS awaited`,
  }
}

function oneSettle(names: Names): Statement {
  const { set, guard, returning } = change(names, {
    state: '$4::smallint',
    kept: '$5::smallint',
    outcome: '$6',
    pointer: '$7',
    retryMs: '$8::bigint',
    retainMs: '$9::bigint',
    notBefore: '$10::bigint',
    refuseMs: '$11::bigint',
    policy: '$12',
  })
  return {
    name: 'onceonly_settle',
    text: `
      UPDATE ${names.records} AS r SET ${set}
      WHERE r.id = $1::uuid AND r.fence = $2::bigint AND r.claim_id = $3 AND ${guard}
      RETURNING ${returning}`,
  }
}

/** In the error of a settle that found nothing to settle. */
export const UNSETTLED = 'onceonly: not settled'

/**
 * A plan that is kept from the time when the table was small would read all of it. Triggers that run at the commit
 * have the default again, and the session's own setting comes back after it.
 */
export function usingIndex(settle: string): string {
  return `SET LOCAL enable_seqscan = off; ${settle}; SET LOCAL enable_seqscan TO DEFAULT`
}

/** The whole message fails with it, so that no effect is committed without its outcome, or outside of its transaction. */
function settleOrFail({ text: settle }: Statement): string {
  const failing = `concat('${UNSETTLED} ', statement_timestamp())::integer`
  return `WITH settled AS (${settle})
    SELECT settled.*, CASE ${failUnlessMarked('$13')} WHEN settled.now IS NULL THEN ${failing} ELSE 0 END AS checked
    FROM (SELECT 1) AS one LEFT JOIN settled ON true`
}

function manySettles(names: Names): Statement {
  const { set, guard, returning } = change(names, {
    state: 'u.state',
    kept: 'u.kept',
    outcome: 'u.outcome',
    pointer: 'u.pointer',
    retryMs: 'u.retry_ms',
    retainMs: 'u.retain_ms',
    notBefore: 'u.not_before',
    refuseMs: 'u.refuse_ms',
    policy: 'u.policy',
  })
  return {
    name: 'onceonly_settles',
    text: `
      UPDATE ${names.records} AS r SET ${set}
      FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::smallint[], $5::smallint[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[])
        AS u(id, fence, claim_id, state, kept, outcome, pointer, retry_ms, retain_ms, not_before, refuse_ms, policy)
      WHERE r.id = u.id AND r.fence = u.fence AND r.claim_id = u.claim_id AND ${guard}
      RETURNING r.id, ${returning}`,
  }
}

function valuesOf({ id, grant, to, pointer }: SettleRequest): unknown[] {
  if (to.state === 'unknown') throw new TypeError('An unknown outcome takes the slow path.')
  const { policy } = grant
  const retryable = to.state === 'failed_retryable'
  // A window counts from settling, or from the claim; either way it does not end before it was settled.
  const fromClaim = policy.retainFrom === 'claimed'
  return [
    id,
    grant.fence,
    grant.claimId,
    stateCode[to.state],
    keptCode[to.outcome.kept],
    to.outcome.data,
    pointer === null ? null : pointerText(pointer),
    retryable ? wholeMs(to.retryAfterMs) : null,
    fromClaim ? 0 : policy.retainMs,
    fromClaim ? grant.claimedAt + policy.retainMs : 0,
    retryable ? 0 : policy.refuseMs,
    policyText(policy),
  ]
}

function wasAwaited(row: TextRow): boolean {
  return row['awaited'] === 't'
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
