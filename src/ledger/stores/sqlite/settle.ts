import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { FailedRetryable, FailedTerminal, Succeeded } from '../../core/record.ts'
import type { HolderDecision, SettleRequest } from '../../core/request.ts'
import type { Moment, Step } from '../../core/transition.ts'
import { runningUnder, transition } from '../../core/transition.ts'
import { keptCode, pointerText, policyText, stateCode } from '../../store/row.ts'
import type { Anchor } from './clock.ts'
import { BY_ID, blobOf, text, time } from './records.ts'

/**
 * The usual settle: the record is still what its grant says, it has no waiters, and nothing unusual ever happened to it. The
 * result is then known without reading, and one guarded UPDATE writes it. When a guard fails, nothing is written and the
 * record is read and decided as any other.
 */
const SETTLE = `UPDATE onceonly_records
  SET state = ?, due_at = ?, settled_at = ?, expires_at = ?, gone_at = ?, kept = ?, pointer = ?, outcome = ?
  WHERE ${BY_ID} AND fence = ? AND claim_id = ? AND state = ${stateCode.running} AND awaited = 0 AND detail IS NULL
    AND pointer IS ? AND policy = ? AND fingerprint = ? AND incarnation = ? AND attempts = ? AND claimed_at = ?`

/** The same with a clock that was read before: the store's time is the one by this anchor, as long as the file has it. */
const SETTLE_ALONE = `${SETTLE} AND EXISTS (SELECT 1 FROM onceonly_meta
    WHERE one = 1 AND boot_id = ? AND anchor_monotonic = ? AND anchor_wall = ? AND offset_ms = ?)`

export interface SettleStatement {
  /** Null when the record has to be looked at. */
  tryBlind(request: SettleRequest, at: Moment): Step<HolderDecision> | null
  /** Commits by itself, outside of a transaction. Null when nothing was written: it has to be decided in one. */
  tryAlone(request: SettleRequest, at: Moment, anchor: Anchor): Step<HolderDecision> | null
}

export function prepareSettle(db: DatabaseSync): SettleStatement {
  const settle = db.prepare(SETTLE)
  const settleAlone = db.prepare(SETTLE_ALONE)
  return {
    tryBlind: (request, at) => {
      const step = stepOf(request, at)
      return step !== null && settle.run(...valuesOf(request, step)).changes === 1 ? step : null
    },
    tryAlone: (request, at, { bootId, monotonicMs, wallMs, offsetMs }) => {
      const step = stepOf(request, at)
      if (step === null) return null
      const { changes } = settleAlone.run(...valuesOf(request, step), bootId, monotonicMs, wallMs, offsetMs)
      return changes === 1 ? step : null
    },
  }
}

/** The rules are run on what the record must be, so that this path cannot decide differently from the others. */
function stepOf(request: SettleRequest, at: Moment): Step<HolderDecision> | null {
  const { grant, to } = request
  // An unknown also writes to the table of unknowns, and what an attempt notes stands in `detail`: too rare to be fast.
  if (to.state === 'unknown' || to.note !== undefined || grant.id !== request.id) return null
  return transition(runningUnder(grant), request, at)
}

function valuesOf({ grant }: SettleRequest, step: Step): SQLInputValue[] {
  const after = step.record as Succeeded | FailedTerminal | FailedRetryable
  const { data } = after.outcome
  const pointer = pointerText(after.pointer)
  const blob = blobOf(grant.id)
  return [
    stateCode[after.state],
    after.state === 'failed_retryable' ? time('due_at', after.retryAt) : null,
    after.settledAt,
    time('expires_at', after.expiresAt),
    time('gone_at', after.goneAt),
    keptCode(after.outcome.kept),
    pointer === null ? null : text('pointer', pointer),
    data === null ? null : text('outcome', data),
    blob,
    blob,
    grant.fence,
    grant.claimId,
    pointerText(grant.pointer),
    policyText(grant.policy),
    grant.fingerprint,
    grant.incarnation,
    grant.attempt,
    grant.claimedAt,
  ]
}
