import { compareFingerprints } from './fingerprint.ts'
import { sameIdentity } from './identity.ts'
import { SECOND } from './limits.ts'
import type { InProgress, LedgerRecord } from './record.ts'
import type { ClaimDecision, ClaimRequest } from './request.ts'
import type { Moment, Step } from './transition-parts.ts'
import { abandon, common, grantOf, hasLapsed, lapse, remember } from './transition-parts.ts'

/** `stored` is the record as the store still has it, also past its end, when it counts as absent. */
export function claim(
  record: LedgerRecord | null,
  request: ClaimRequest,
  at: Moment,
  stored: LedgerRecord | null,
): Step<ClaimDecision> {
  if (record === null) return first(request, at, stored !== null && hadOutcome(stored, request))
  if (!sameIdentity(record.identity, request.identity)) return { record, decision: { kind: 'identity_collision' } }
  const match = compareFingerprints(record.fingerprint, request.fingerprints)
  if (record.state === 'vacant') return overVacant(record, request, at, match === 'same')
  // A reused key outranks every other answer, and never changes the record.
  if (match === 'different' || (match === 'unverified' && request.refuseUnverified === true)) {
    const decision = { kind: 'key_reused', recorded: record.fingerprint, presented: request.fingerprints[0] } as const
    return { record, decision }
  }
  return sameCommand(record, request, at, match === 'same')
}

type Present = Exclude<LedgerRecord, { state: 'vacant' }>

function sameCommand(record: Present, request: ClaimRequest, at: Moment, verified: boolean): Step<ClaimDecision> {
  switch (record.state) {
    case 'in_progress':
      if (record.claimId === request.claimId) return ownClaim(record, request, at, verified)
      if (hasLapsed(record, at.now)) return sameCommand(lapse(record, at), request, at, verified)
      return twin(record, request, at, verified)
    case 'succeeded':
    case 'failed_terminal': {
      if (record.expiresAt <= at.now) return { record, decision: { kind: 'key_expired', verified } }
      const kind = record.state === 'succeeded' ? 'replay_success' : 'replay_failure'
      return { record, decision: { kind, outcome: record.outcome, verified } }
    }
    case 'failed_retryable': {
      // A claim that was already settled and arrives again, late, must not be granted without a holder.
      if (at.now >= record.retryAt && record.claimId !== request.claimId) return again(record, request, at, verified)
      const retryAfterMs = Math.max(0, record.retryAt - at.now)
      return { record, decision: { kind: 'retry_later', retryAt: record.retryAt, retryAfterMs, verified } }
    }
    case 'unknown':
      if (record.abandonAt <= at.now) {
        const abandoned = abandon(record, at)
        // A window that counts from its claim is over in the same moment.
        return abandoned.goneAt <= at.now ? first(request, at, true) : sameCommand(abandoned, request, at, verified)
      }
      return {
        record,
        decision: { kind: 'outcome_unknown', since: record.since, attempts: record.attempts, verified },
      }
  }
}

/** What is left of a released or forgotten record is no outcome that has expired. */
function hadOutcome(stored: LedgerRecord, { identity }: ClaimRequest): boolean {
  return stored.state !== 'vacant' && sameIdentity(stored.identity, identity)
}

/** Shared by all records whose life was ordinary: most of them. */
const NOTHING_UNUSUAL: LedgerRecord['history'] = []

function first(request: ClaimRequest, at: Moment, expired = false): Step<ClaimDecision> {
  const record: InProgress = {
    state: 'in_progress',
    id: request.id,
    identity: request.identity,
    fingerprint: request.fingerprints[0],
    incarnation: at.fence,
    fence: at.fence,
    claimId: request.claimId,
    attempts: 1,
    claimedAt: at.now,
    pointer: null,
    policy: request.policy,
    awaited: false,
    history: NOTHING_UNUSUAL,
    started: request.start,
    leaseUntil: at.now + request.leaseMs,
  }
  const lease = grantOf(record)
  return { record, decision: { kind: 'first_attempt', lease, verified: true, ...(expired ? { expired } : {}) } }
}

/** A new attempt of the same incarnation: effect keys stay, the fence rises, the old attempt can write nothing more. */
function again(previous: LedgerRecord, request: ClaimRequest, at: Moment, verified: boolean): Step<ClaimDecision> {
  const record: InProgress = {
    ...common(previous),
    state: 'in_progress',
    history: remember(previous, 'reclaimed', at),
    policy: request.policy,
    fence: at.fence,
    claimId: request.claimId,
    attempts: previous.attempts + 1,
    claimedAt: at.now,
    started: request.start,
    leaseUntil: at.now + request.leaseMs,
  }
  return { record, decision: { kind: 'reclaimed', lease: grantOf(record), verified } }
}

/**
 * The caller's own claim, whose acknowledgement was lost. Its effect cannot have begun without the grant, so the lease
 * starts again.
 */
function ownClaim(record: InProgress, request: ClaimRequest, at: Moment, verified: boolean): Step<ClaimDecision> {
  const own: InProgress = { ...record, leaseUntil: at.now + request.leaseMs }
  const kind = own.fence === own.incarnation ? 'first_attempt' : 'reclaimed'
  return { record: own, decision: { kind, lease: grantOf(own), verified } }
}

const RETRY_AFTER_LEAST_MS = SECOND / 2
const RETRY_AFTER_MOST_MS = 5 * SECOND

/** An attempt that has run for a while will probably run as long again; the retry delay never exceeds the lease. */
function twin(record: InProgress, request: ClaimRequest, at: Moment, verified: boolean): Step<ClaimDecision> {
  const soFarMs = at.now - record.claimedAt
  const retryAfterMs = Math.min(Math.max(soFarMs, RETRY_AFTER_LEAST_MS), RETRY_AFTER_MOST_MS)
  const after = request.wait && !record.awaited ? { ...record, awaited: true } : record
  return { record: after, decision: { kind: 'in_progress', attempt: record.attempts, retryAfterMs, verified } }
}

function overVacant(
  record: LedgerRecord & { state: 'vacant' },
  request: ClaimRequest,
  at: Moment,
  samePayload: boolean,
): Step<ClaimDecision> {
  // The holder gave this very claim back; a late copy of it must not be granted.
  if (record.claimId === request.claimId) {
    return { record, decision: { kind: 'retry_later', retryAt: at.now, retryAfterMs: 0, verified: samePayload } }
  }
  if (record.forgotten || !samePayload || record.attempts === 0) return first(request, at)
  return again(record, request, at, true)
}
