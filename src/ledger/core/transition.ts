import { compareFingerprints } from './digest.ts'
import { sameIdentity } from './identity.ts'
import { limits, SECOND } from './limits.ts'
import type { InProgress, LedgerRecord, Vacant } from './record.ts'
import type {
  AttachRequest,
  ClaimDecision,
  ClaimRequest,
  DecisionOf,
  HolderDecision,
  ReleaseRequest,
  RenewRequest,
  Request,
  SettleRequest,
  StartRequest,
} from './request.ts'
import { forget, probe, reconcile, replace, resolve, unique } from './transition-operator.ts'
import type { Moment, Step } from './transition-parts.ts'
import {
  abandon,
  common,
  factsAfter,
  grantOf,
  hasLapsed,
  knowing,
  lapse,
  NO_CALL,
  remember,
  retryable,
  runningUnder,
  settledAs,
  unknownFrom,
} from './transition-parts.ts'

export type { Moment, Step } from './transition-parts.ts'
export { runningUnder } from './transition-parts.ts'

/**
 * The whole machine. The memory store runs it; SQL statements and scripts implement it; the conformance kit compares
 * every store with it on random histories. A guarantee is written here once, and checked everywhere.
 *
 * @example
 * ```ts
 * import { type LedgerRecord, type StoreRequest, transition } from 'onceonly/store'
 *
 * // One request to a store of your own, while its row is locked.
 * export function decide(row: LedgerRecord | null, request: StoreRequest, now: number, fence: number) {
 *   const { record, decision } = transition(row, request, { now, fence })
 *   return { decision, write: record === row ? null : record }
 * }
 * ```
 */
export function transition<R extends Request>(stored: LedgerRecord | null, request: R, at: Moment): Step<DecisionOf<R>>
export function transition(stored: LedgerRecord | null, request: Request, at: Moment): Step {
  // A record past its end does not exist, whether or not the sweep has been there.
  const record = stored !== null && 'goneAt' in stored && stored.goneAt <= at.now ? null : stored
  const step = decide(record, request, at, stored)
  // Nothing decided, nothing written: the sweep removes the expired row later.
  return step.record === null && stored !== null ? { ...step, record: stored } : step
}

function decide(record: LedgerRecord | null, request: Request, at: Moment, stored: LedgerRecord | null): Step {
  switch (request.kind) {
    case 'claim':
      return claim(record, request, at, stored)
    case 'start':
      return start(record, request, at)
    case 'renew':
      return renew(record, request, at)
    case 'attach':
      return attach(record, request)
    case 'settle':
      return settle(record, request, at, stored)
    case 'release':
      return release(record, request, at)
    case 'reconcile':
      return reconcile(record, at)
    case 'probe':
      return probe(record, request, at)
    case 'resolve':
      return resolve(record, request, at)
    case 'forget':
      return forget(record, request, at)
    case 'unique':
      return unique(record, request, at)
    case 'replace':
      return replace(stored, request, at)
  }
}

/** `stored` is the record as the store still has it, also past its end, when it counts as absent. */
function claim(
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

const applied: HolderDecision = { kind: 'applied', recordLost: false }

function lost(record: LedgerRecord | null, conflict = false): Step<HolderDecision> {
  return { record, decision: { kind: 'lease_lost', state: record === null ? 'absent' : record.state, conflict } }
}

/** Ownership is fence and claim id, never time: a lease that lapsed unnoticed is still its holder's. */
function owns(record: LedgerRecord, holder: { claimId: string; fence: number }): boolean {
  return record.fence === holder.fence && record.claimId === holder.claimId
}

function start(record: LedgerRecord | null, request: StartRequest, at: Moment): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  const after: InProgress = { ...record, started: true, leaseUntil: at.now + request.leaseMs }
  return { record: after, decision: applied }
}

function renew(record: LedgerRecord | null, request: RenewRequest, at: Moment): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  return { record: { ...record, leaseUntil: at.now + request.leaseMs }, decision: applied }
}

function attach(record: LedgerRecord | null, request: AttachRequest): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  return { record: { ...record, pointer: request.pointer }, decision: applied }
}

/** `stored` is the record as the store still has it, also past its end, when it counts as absent. */
function settle(
  record: LedgerRecord | null,
  request: SettleRequest,
  at: Moment,
  stored: LedgerRecord | null,
): Step<HolderDecision> {
  if (record === null) return settleAbsent(request, at, stored)
  if (!owns(record, request.grant)) return superseded(record, request, at)
  switch (record.state) {
    case 'in_progress':
    case 'unknown':
      return { record: settledFrom(record, request, at), decision: applied }
    case 'failed_retryable':
      // Settled already: the same answer again. Lapsed without a word: the late word counts.
      return { record: record.lapsed ? settledFrom(record, request, at) : record, decision: applied }
    case 'succeeded':
    case 'failed_terminal':
      return { record, decision: applied }
    case 'vacant':
      return lost(record)
  }
}

/**
 * A claim younger than every end it can have come to was lost by the store: record the outcome. An older one may have been
 * settled, by this holder or another, and have expired since: a late settle must not bring it back.
 */
function settleAbsent(request: SettleRequest, at: Moment, stored: LedgerRecord | null): Step<HolderDecision> {
  const { grant } = request
  if (stored !== null) {
    const settled = stored.state === 'failed_retryable' ? !stored.lapsed : stored.state !== 'vacant'
    return settled && owns(stored, grant) ? { record: null, decision: applied } : lost(null)
  }
  if (at.now >= grant.claimedAt + Math.min(grant.policy.retainMs, limits.vacantMs)) return lost(null)
  const history = [{ at: at.now, what: 'lost', attempt: grant.attempt, fence: grant.fence } as const]
  const after = settledFrom({ ...runningUnder(grant), history }, request, at)
  return { record: after, decision: { kind: 'applied', recordLost: true } }
}

function settledFrom(before: LedgerRecord, request: SettleRequest, at: Moment): LedgerRecord {
  const { to } = request
  // An attempt's note counts once: its first settle may have been "unknown".
  const isFirst = before.state !== 'unknown' || before.reason === null
  const record = isFirst && to.note !== undefined ? knowing(before, factsAfter(before.facts, to.note)) : before
  const quiet = { awaited: false }
  const pointer = request.pointer ?? record.pointer
  switch (to.state) {
    case 'succeeded':
    case 'failed_terminal':
      return settledAs(to.state, record, { outcome: to.outcome, pointer, now: at.now })
    case 'failed_retryable': {
      const retryAt = at.now + to.retryAfterMs
      return { ...retryable({ ...record, pointer }, at.now, { retryAt, lapsed: false, outcome: to.outcome }), ...quiet }
    }
    case 'unknown':
      // A second "unknown" must not push the end of the first one away.
      return before.state === 'unknown'
        ? before
        : { ...unknownFrom({ ...record, pointer }, at.now, to.reason), ...quiet }
  }
}

/** A late loser changes nothing but the history; what it says is kept there, once. */
function superseded(record: LedgerRecord, request: SettleRequest, at: Moment): Step<HolderDecision> {
  const { grant, to } = request
  const conflict = contradicts(record, request)
  const known = record.history.some((entry) => entry.what === 'superseded' && entry.fence === grant.fence)
  if (known) return lost(record, conflict)
  const entry = { at: at.now, what: 'superseded', attempt: grant.attempt, fence: grant.fence, note: to.state } as const
  const history = [...record.history, entry].slice(-limits.historyEntries)
  return { ...lost({ ...record, history }, conflict) }
}

export function contradicts(record: LedgerRecord, request: SettleRequest): boolean {
  const { to } = request
  // Only what says that something happened, or never will, can contradict a record.
  if (to.state !== 'succeeded' && to.state !== 'failed_terminal') return false
  if (record.state !== 'succeeded' && record.state !== 'failed_terminal') return false
  return record.state !== to.state || record.outcome.data !== to.outcome.data
}

/** The effect of this claim never began. If the claim itself is still on its way, the trace left here stops it. */
function release(record: LedgerRecord | null, request: ReleaseRequest, at: Moment): Step<HolderDecision> {
  const end = { state: 'vacant', goneAt: at.now + limits.releasedMs, forgotten: false } as const
  if (record === null) {
    const { id, identity, fingerprint, policy, claimId } = request
    const life = {
      incarnation: at.fence,
      fence: at.fence,
      attempts: 0,
      claimedAt: at.now,
      pointer: null,
      awaited: false,
    }
    const trace: Vacant = { id, identity, fingerprint, policy, claimId, ...life, history: [], ...end }
    return { record: trace, decision: applied }
  }
  if (!sameIdentity(record.identity, request.identity) || record.claimId !== request.claimId) return lost(record)
  if (record.state === 'vacant') return { record, decision: applied }
  if (record.state !== 'in_progress') return lost(record)
  const history = remember(record, 'released', at)
  const uncalled = knowing(record, factsAfter(record.facts, NO_CALL))
  const after: Vacant = { ...common(uncalled), ...end, history, fence: at.fence, awaited: false }
  return { record: after, decision: applied }
}
