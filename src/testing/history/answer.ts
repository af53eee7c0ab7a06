import type { Fence } from '../../ledger/core/identity.ts'
import type { Decision } from '../../ledger/core/request.ts'

/** The fence in an answer, or null. */
export function fenceIn(decision: Decision): Fence | null {
  if (decision.kind === 'first_attempt' || decision.kind === 'reclaimed') return decision.lease.fence
  return decision.kind === 'probe_granted' ? decision.fence : null
}

/**
 * Times are left out: when an unanswered call took effect is not known, and all later times may follow from it. So may the
 * incarnation, when the fence of the grant that it came from was never observed.
 */
export function sameAnswer(expected: Decision, actual: Decision): boolean {
  return JSON.stringify(essence(expected)) === JSON.stringify(essence(actual)) && sameLife(expected, actual)
}

function sameLife(expected: Decision, actual: Decision): boolean {
  if (!('lease' in expected) || !('lease' in actual)) return true
  const { incarnation } = expected.lease
  return !Number.isInteger(incarnation) || incarnation === actual.lease.incarnation
}

function essence(decision: Decision): unknown[] {
  switch (decision.kind) {
    case 'first_attempt':
    case 'reclaimed': {
      const { claimId, fence, attempt } = decision.lease
      return [decision.kind, claimId, fence, attempt]
    }
    case 'replay_success':
    case 'replay_failure':
      return [decision.kind, decision.outcome.kept, decision.outcome.data]
    case 'in_progress':
      return [decision.kind, decision.attempt]
    case 'key_reused':
      return [decision.kind, decision.recorded, decision.presented]
    case 'outcome_unknown':
      return [decision.kind, decision.attempts]
    case 'applied':
      return [decision.kind, decision.recordLost]
    case 'lease_lost':
      return [decision.kind, decision.state, decision.conflict]
    case 'lapsed':
      return [decision.kind, decision.to]
    case 'refused':
      return [decision.kind, decision.why]
    case 'unique_taken':
      return [decision.kind, decision.owner]
    case 'probe_granted':
      return [decision.kind, decision.fence, decision.probes]
    case 'retry_later':
    case 'key_expired':
    case 'identity_collision':
    case 'abandoned':
    case 'unchanged':
    case 'done':
    case 'unique_claimed':
    case 'replaced':
    case 'changed':
      return [decision.kind]
  }
}
