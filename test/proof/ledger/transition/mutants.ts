import { limits } from '../../../../src/ledger/core/limits.ts'
import type { InProgress, LedgerRecord } from '../../../../src/ledger/core/record.ts'
import type { ClaimDecision, Grant, Request } from '../../../../src/ledger/core/request.ts'
import type { Moment, Step } from '../../../../src/ledger/core/transition.ts'
import { transition } from '../../../../src/ledger/core/transition.ts'
import type { Machine } from '../../../support/ledger/transition/world.ts'

/**
 * The machine with one protective rule removed each. Every one of them is a bug that has been shipped; every one
 * must be noticed, by the explorer where it can be, and by a rule with a name.
 */
export const mutants: Readonly<Record<string, Machine>> = {
  'a holder is not asked for its fence': forHolder((stored, request) => holding(request, { fence: stored.fence })),
  'a holder is not asked for its claim id': forHolder((stored, request) =>
    holding(request, { claimId: stored.claimId }),
  ),
  'any claim may settle': only('settle', (stored, request) => holding(request, ownerOf(stored))),
  'any claim may renew': only('renew', (stored, request) => holding(request, ownerOf(stored))),
  'any claim may start': only('start', (stored, request) => holding(request, ownerOf(stored))),
  'any claim may attach': only('attach', (stored, request) => holding(request, ownerOf(stored))),
  'any claim may release': only('release', ({ claimId }, request) => ({ ...request, claimId }) as Request),

  'an own claim is taken for a rival': only('claim', (stored, request) => {
    const own = stored.state === 'in_progress' && stored.claimId === claimIdOf(request)
    return own ? ({ ...request, claimId: 'a rival' } as Request) : request
  }),
  'an own claim, repeated, gets a new fence': (stored, request, at) => {
    const step = transition(stored, request, at)
    const own = stored?.state === 'in_progress' && stored.claimId === claimIdOf(request)
    return own ? withFence(step, at.fence) : step
  },
  'a running attempt outranks a reused key': (stored, request, at) => {
    const step = transition(stored, request, at)
    if (step.decision.kind !== 'key_reused' || stored?.state !== 'in_progress') return step
    const decision: ClaimDecision = {
      kind: 'in_progress',
      attempt: stored.attempts,
      retryAfterMs: 500,
      verified: false,
    }
    return { record: stored, decision }
  },
  'a reused key overwrites the record': (stored, request, at) => {
    const step = transition(stored, request, at)
    if (step.decision.kind !== 'key_reused' || step.record === null) return step
    return { ...step, record: { ...step.record, fingerprint: step.decision.presented } }
  },
  'a reused key is replayed': only('claim', (stored, request) => {
    return request.kind === 'claim' ? { ...request, fingerprints: [stored.fingerprint] } : request
  }),
  'another identity under the same id is let in': only(
    'claim',
    ({ identity }, request) => ({ ...request, identity }) as Request,
  ),

  'a reclaim does not raise the fence': (stored, request, at) => {
    const step = transition(stored, request, at)
    const raised = step.decision.kind === 'reclaimed' && stored !== null && step.record?.claimId !== stored.claimId
    return raised ? withFence(step, stored.fence) : step
  },
  'a first attempt after forget takes the old fence': (stored, request, at) => {
    const step = transition(stored, request, at)
    return stored?.state === 'vacant' && step.decision.kind === 'first_attempt' ? withFence(step, stored.fence) : step
  },
  "an operator's resolve does not raise the fence": keepsFence('resolve'),
  "an operator's forget does not raise the fence": keepsFence('forget'),
  'a release does not raise the fence': keepsFence('release'),
  'giving up an unknown outcome does not raise the fence': keepsFence('reconcile'),

  'a lapsed effect is free again whether or not it started': lapsing((record) => ({ ...record, started: false })),
  'a lapsed reservation counts as started': lapsing((record) => ({ ...record, started: true })),
  'a lapsed effect is rerun whatever the policy': lapsing((record) => {
    return { ...record, policy: { ...record.policy, onAbandoned: 'rerun' } }
  }),
  'a lease never lapses': lapsing((record) => ({ ...record, leaseUntil: Number.MAX_SAFE_INTEGER })),
  'a lease lapses after its retention': lapsing((record) => {
    return { ...record, leaseUntil: record.leaseUntil + record.policy.retainMs + 10 * limits.leaseGraceMs }
  }),
  'a lease lapses without its grace': lapsing((record) => {
    return { ...record, leaseUntil: record.leaseUntil - limits.leaseGraceMs }
  }),
  'a lease lapses before its end': lapsing((record) => {
    return { ...record, leaseUntil: record.leaseUntil - 2 * limits.leaseGraceMs }
  }),

  'expiry is ignored': (stored, request, at) => {
    const kept = stored !== null && 'goneAt' in stored ? { ...stored, goneAt: Infinity, expiresAt: Infinity } : stored
    const step = transition(kept as LedgerRecord | null, request, at)
    return step.record === kept ? { ...step, record: stored } : step
  },
  'a success is forgotten at once': settledAs((record, at) => ({ ...record, expiresAt: at.now, goneAt: at.now })),
  'retention counts from the claim': settledAs((record) => {
    const expiresAt = record.claimedAt + record.policy.retainMs
    return { ...record, expiresAt, goneAt: expiresAt + record.policy.refuseMs }
  }),
  'an expired key is not refused': settledAs((record) => ({ ...record, goneAt: record.expiresAt })),
  'an unknown outcome is never given up': (stored, request, at) => {
    const kept = stored?.state === 'unknown' ? { ...stored, abandonAt: Infinity } : stored
    const step = transition(kept, request, at)
    return step.record === kept ? { ...step, record: stored } : step
  },

  'a release leaves no trace for its late claim': (stored, request, at) => {
    const step = transition(stored, request, at)
    return request.kind === 'release' && stored === null ? { ...step, record: null } : step
  },
  'a release deletes the record': (stored, request, at) => {
    const step = transition(stored, request, at)
    return request.kind === 'release' && step.decision.kind === 'applied' ? { ...step, record: null } : step
  },
  'a late copy of a released claim comes to life': only(
    'claim',
    (stored, request) => {
      return stored.state === 'vacant' ? ({ ...request, claimId: `${claimIdOf(request)} late` } as Request) : request
    },
    restoreClaimId,
  ),
  'a late copy of a settled claim comes to life': only(
    'claim',
    (stored, request) => {
      const late = stored.state === 'failed_retryable'
      return late ? ({ ...request, claimId: `${claimIdOf(request)} late` } as Request) : request
    },
    restoreClaimId,
  ),
  'a retryable failure is tried again at once': only(
    'claim',
    (_, request) => request,
    undefined,
    (stored) => {
      return stored.state === 'failed_retryable' ? { ...stored, retryAt: 0 } : stored
    },
  ),
  'a retryable failure gets new effect keys': (stored, request, at) => {
    const step = transition(stored, request, at)
    if (step.decision.kind !== 'reclaimed' || step.record === null) return step
    const lease: Grant = { ...step.decision.lease, incarnation: at.fence }
    return { record: { ...step.record, incarnation: at.fence }, decision: { ...step.decision, lease } }
  },

  'a late word on an unknown outcome is refused': (stored, request, at) => {
    if (request.kind !== 'settle' || stored?.state !== 'unknown') return transition(stored, request, at)
    return { record: stored, decision: { kind: 'lease_lost', state: 'unknown', conflict: false } }
  },
  'a late word on a lapsed attempt is not recorded': (stored, request, at) => {
    const step = transition(stored, request, at)
    return request.kind === 'settle' && stored?.state === 'failed_retryable' ? { ...step, record: stored } : step
  },
  'a settle is answered but not recorded': (stored, request, at) => {
    const step = transition(stored, request, at)
    return request.kind === 'settle' && stored?.state === 'in_progress' ? { ...step, record: stored } : step
  },
  'settling again counts anew': (stored, request, at) => {
    const again = request.kind === 'settle' && stored?.state === 'succeeded' && stored.fence === request.grant.fence
    return transition(again ? null : stored, request, at)
  },
  'a lost record stays lost': (stored, request, at) => {
    if (request.kind !== 'settle' || stored !== null) return transition(stored, request, at)
    return { record: null, decision: { kind: 'lease_lost', state: 'absent', conflict: false } }
  },
  'a late word brings an expired record back': (stored, request, at) => {
    const absent = stored === null || ('goneAt' in stored && stored.goneAt <= at.now)
    if (request.kind !== 'settle' || !absent) return transition(stored, request, at)
    return transition(null, { ...request, grant: { ...request.grant, claimedAt: at.now } }, at)
  },
  'a contradiction is not reported': (stored, request, at) => {
    const step = transition(stored, request, at)
    return step.decision.kind === 'lease_lost' ? { ...step, decision: { ...step.decision, conflict: false } } : step
  },

  'two may probe at once': only(
    'probe',
    (_, request) => request,
    undefined,
    (stored) => {
      return stored.state === 'unknown' ? { ...stored, probe: null } : stored
    },
  ),
  'a probe that lost its turn may resolve': only('resolve', (stored, request) => {
    const fence = stored.state === 'unknown' ? (stored.probe?.fence ?? null) : null
    return request.kind === 'resolve' && request.probeFence !== null ? { ...request, probeFence: fence } : request
  }),
  "an operator's fence is not compared": (stored, request, at) => {
    const free = request.kind === 'resolve' || request.kind === 'forget'
    return transition(stored, free ? { ...request, ifFence: null } : request, at)
  },
  'a business value goes to the last claim': only(
    'unique',
    (_, request) => request,
    undefined,
    (stored) => {
      return stored.state === 'succeeded' && stored.policy.retainMs > 1e15
        ? { ...stored, goneAt: 0, expiresAt: 0 }
        : stored
    },
  ),
}

type Change = (stored: LedgerRecord, request: Request) => Request

/** Sends the true machine another request than the given one. */
function only(
  kind: Request['kind'],
  change: Change,
  after: (step: Step, asked: Request) => Step = (step) => step,
  see: (stored: LedgerRecord) => LedgerRecord = (stored) => stored,
): Machine {
  return (stored, request, at) => {
    if (stored === null || request.kind !== kind) return transition(stored, request, at)
    const seen = see(stored)
    const step = after(transition(seen, change(stored, request), at), request)
    return step.record === seen ? { ...step, record: stored } : step
  }
}

function forHolder(change: Change): Machine {
  return (stored, request, at) => {
    const holders = request.kind === 'settle' || request.kind === 'renew' || request.kind === 'start'
    return transition(stored, stored !== null && holders ? change(stored, request) : request, at)
  }
}

function holding(request: Request, owner: { fence?: number; claimId?: string }): Request {
  if (request.kind === 'settle') return { ...request, grant: { ...request.grant, ...owner } }
  return { ...request, ...owner } as Request
}

function ownerOf({ fence, claimId }: LedgerRecord): { fence: number; claimId: string } {
  return { fence, claimId }
}

function claimIdOf(request: Request): string | null {
  return 'claimId' in request ? request.claimId : null
}

function restoreClaimId(step: Step, asked: Request): Step {
  if (!('lease' in step.decision) || step.record === null || asked.kind !== 'claim') return step
  const { claimId } = asked
  const decision = { ...step.decision, lease: { ...step.decision.lease, claimId } } as Step['decision']
  return { record: { ...step.record, claimId }, decision }
}

function withFence(step: Step, fence: number): Step {
  if (step.record === null) return step
  const decision =
    'lease' in step.decision && 'verified' in step.decision
      ? { ...step.decision, lease: { ...step.decision.lease, fence } }
      : step.decision
  return { record: { ...step.record, fence }, decision }
}

function keepsFence(kind: Request['kind']): Machine {
  return (stored, request, at) => {
    const step = transition(stored, request, at)
    return request.kind === kind && stored !== null && step.record !== stored ? withFence(step, stored.fence) : step
  }
}

/** Looks at a running attempt through other eyes when its end is judged; what it is otherwise stays. */
function lapsing(see: (record: InProgress) => InProgress): Machine {
  return (stored, request, at) => {
    const holder =
      'grant' in request || request.kind === 'renew' || request.kind === 'start' || request.kind === 'attach'
    if (stored?.state !== 'in_progress' || holder || request.kind === 'release') return transition(stored, request, at)
    const seen = see(stored)
    const step = transition(seen, request, at)
    if (step.record === seen) return { ...step, record: stored }
    const { record } = step
    // Only what was decided by the changed look may differ: an own claim and a twin's mark keep the rest.
    const kept = record?.state === 'in_progress' && record.fence === stored.fence
    return kept ? { ...step, record: { ...record, started: stored.started, policy: stored.policy } } : step
  }
}

type Settled = LedgerRecord & { state: 'succeeded' }

function settledAs(change: (record: Settled, at: Moment) => Settled): Machine {
  return (stored, request, at) => {
    const step = transition(stored, request, at)
    const settled = request.kind === 'settle' && step.record?.state === 'succeeded' && step.record !== stored
    return settled ? { ...step, record: change(step.record as Settled, at) } : step
  }
}
