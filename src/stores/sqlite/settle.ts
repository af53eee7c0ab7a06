import type { DatabaseSync } from 'node:sqlite'
import type { InProgress, LedgerRecord } from '../../core/record.ts'
import type { Grant, HolderDecision, SettleRequest } from '../../core/request.ts'
import type { Moment, Step } from '../../core/transition.ts'
import { transition } from '../../core/transition.ts'
import { pointerText, policyText, stateCode, toRow } from '../../store/row.ts'
import { blobOf, storable } from './records.ts'

/**
 * The usual settle: the record is still what its grant says, nobody waits for it, and nothing unusual ever happened to
 * it. The result is then known without reading, and one guarded UPDATE writes it. When a single guard fails, nothing
 * is written and the record is read and decided as any other.
 */
const SETTLE = `UPDATE onceonly_records
  SET state = ?, due_at = ?, settled_at = ?, expires_at = ?, gone_at = ?, kept = ?, pointer = ?, outcome = ?
  WHERE id = ? AND fence = ? AND claim_id = ? AND state = ${stateCode.running} AND awaited = 0 AND detail IS NULL
    AND pointer IS ? AND policy = ? AND fingerprint = ? AND incarnation = ? AND attempts = ? AND claimed_at = ?`

export interface SettleStatement {
  /** Null when the record has to be looked at. */
  tryBlind(request: SettleRequest, at: Moment): Step<HolderDecision> | null
}

export function prepareSettle(db: DatabaseSync): SettleStatement {
  const settle = db.prepare(SETTLE)
  return {
    tryBlind: (request, at) => {
      const { grant, to } = request
      // An unknown also writes to the table of unknowns: too rare to be fast.
      if (to.state === 'unknown' || grant.id !== request.id) return null
      // The rules are run on what the record must be, so that this path cannot decide differently from the others.
      const step = transition(runningUnder(grant), request, at)
      const row = toRow(step.record as LedgerRecord)
      const { changes } = settle.run(
        row.state,
        storable('due_at', row.due_at),
        storable('settled_at', row.settled_at),
        storable('expires_at', row.expires_at),
        storable('gone_at', row.gone_at),
        row.kept,
        storable('pointer', row.pointer),
        storable('outcome', row.outcome),
        blobOf(grant.id),
        grant.fence,
        grant.claimId,
        pointerText(grant.pointer),
        policyText(grant.policy),
        grant.fingerprint,
        grant.incarnation,
        grant.attempt,
        grant.claimedAt,
      )
      return changes === 1 ? step : null
    },
  }
}

function runningUnder(grant: Grant): InProgress {
  const { id, identity, fingerprint, policy, claimId, fence, incarnation, attempt, claimedAt, leaseUntil, pointer } =
    grant
  return {
    state: 'in_progress',
    id,
    identity,
    fingerprint,
    incarnation,
    fence,
    claimId,
    attempts: attempt,
    claimedAt,
    pointer,
    policy,
    awaited: false,
    history: [],
    started: true,
    leaseUntil,
  }
}
