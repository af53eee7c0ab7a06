import type { ClaimRequest } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import type { AppliedDecision } from '../../store/port.ts'
import { policyText, stateCode } from '../../store/row.ts'
import type { Answers } from '../../store/sql/decide.ts'
import { wholeMs } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import { statementNowSql } from './clock-sql.ts'
import type { Names } from './names.ts'
import { quoteText } from './names.ts'
import type { Executor, Script, ScriptForm, Statement, TextRow } from './statement.ts'
import { arraysOf, plainId, scriptOf, text } from './statement.ts'

/**
 * The claim of an identity that has no row: one unique insert, never find-then-insert. A claim that finds a row, even one
 * that expired long ago, inserts nothing and is decided by the next step.
 *
 * Rows are inserted in the order of the arrays, which is the order of the ids, so that two batches that wait for each
 * other's rows do so in one direction. The insert waits for a twin that has not committed yet, up to `lock_timeout`.
 */
export interface InsertClaims {
  (on: Executor, requests: readonly ClaimRequest[]): Promise<Answers>
  /** One claim, to be sent together with other statements. */
  readonly script: Script
  /** Null when the claim cannot be written so. */
  text(request: ClaimRequest, form: ScriptForm): string | null
  /** What the server answered to that. */
  answer(request: ClaimRequest, rows: readonly unknown[]): AppliedDecision | null
}

export function createInsertClaims(names: Names): InsertClaims {
  const one = oneClaim(names)
  const script = scriptOf(one.text)
  const many = manyClaims(names)
  const insert = async (on: Executor, requests: readonly ClaimRequest[]): Promise<Answers> => {
    const [first] = requests
    if (first === undefined) return []
    if (requests.length === 1) {
      const [row] = await on.run(one, valuesOf(first))
      return [row === undefined ? null : granted(first, row)]
    }
    const given = await on.run(many, arraysOf(requests.map(valuesOf)))
    const rows = new Map(given.map((row) => [plainId(text(row, 'id')), row]))
    return requests.map((request) => {
      const row = rows.get(request.id)
      return row === undefined ? null : granted(request, row)
    })
  }
  return Object.assign(insert, {
    script,
    text: (request: ClaimRequest, form: ScriptForm) =>
      unfit(request) === null ? script[form](valuesOf(request)) : null,
    answer: (request: ClaimRequest, [row]: readonly unknown[]) =>
      row === undefined ? null : granted(request, row as TextRow),
  })
}

/** The first fence of a record is its incarnation, which the row therefore leaves out. */
const target = `(id, tenant, caller, operation, key, batch, fingerprint, claim_id, policy, state,
  fence, attempts, claimed_at, due_at)`

function oneClaim(names: Names): Statement {
  const now = statementNowSql(names)
  return {
    name: 'onceonly_claim',
    text: `
      INSERT INTO ${names.records} ${target}
      VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10::smallint,
        nextval(${quoteText(names.fences)}), 1, ${now}, ${now} + $11::bigint)
      ON CONFLICT (id) DO NOTHING
      RETURNING fence, claimed_at AS now`,
  }
}

/** One time for the batch, one fence for each row. */
function manyClaims(names: Names): Statement {
  const now = statementNowSql(names)
  return {
    name: 'onceonly_claims',
    text: `
      INSERT INTO ${names.records} ${target}
      SELECT u.id, u.tenant, u.caller, u.operation, u.key, u.batch, u.fingerprint, u.claim_id, u.policy, u.state,
        nextval(${quoteText(names.fences)}), 1, ${now}, ${now} + u.lease_ms
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::smallint[], $11::bigint[])
        AS u(id, tenant, caller, operation, key, batch, fingerprint, claim_id, policy, state, lease_ms)
      ON CONFLICT (id) DO NOTHING
      RETURNING id, fence, claimed_at AS now`,
  }
}

function valuesOf(request: ClaimRequest): unknown[] {
  const { identity } = request
  return [
    request.id,
    identity.tenant,
    identity.caller,
    identity.operation,
    identity.key,
    identity.batch ?? null,
    request.fingerprints[0],
    request.claimId,
    policyText(request.policy),
    request.start ? stateCode.running : stateCode.reserved,
    wholeMs(request.leaseMs),
  ]
}

/** The row was written as `transition` would have: the answer is its own. */
function granted(request: ClaimRequest, row: TextRow): AppliedDecision {
  const now = Number(row['now'])
  const { record, decision } = transition(null, request, { now, fence: Number(row['fence']) })
  return { record, decision, now }
}
