import { sameIdentity } from './identity.ts'
import { limits } from './limits.ts'
import type { InProgress, LedgerRecord, Vacant } from './record.ts'
import type {
  AttachRequest,
  HolderDecision,
  ReleaseRequest,
  RenewRequest,
  SettleRequest,
  StartRequest,
} from './request.ts'
import type { Moment, Step } from './transition-parts.ts'
import {
  common,
  factsAfter,
  knowing,
  NO_CALL,
  remember,
  retryable,
  runningUnder,
  settledAs,
  unknownFrom,
} from './transition-parts.ts'

const applied: HolderDecision = { kind: 'applied', recordLost: false }

function lost(record: LedgerRecord | null, conflict = false): Step<HolderDecision> {
  return { record, decision: { kind: 'lease_lost', state: record === null ? 'absent' : record.state, conflict } }
}

/** Ownership is fence and claim id, never time: a lease that lapsed unnoticed is still its holder's. */
function owns(record: LedgerRecord, holder: { claimId: string; fence: number }): boolean {
  return record.fence === holder.fence && record.claimId === holder.claimId
}

export function start(record: LedgerRecord | null, request: StartRequest, at: Moment): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  const after: InProgress = { ...record, started: true, leaseUntil: at.now + request.leaseMs }
  return { record: after, decision: applied }
}

export function renew(record: LedgerRecord | null, request: RenewRequest, at: Moment): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  return { record: { ...record, leaseUntil: at.now + request.leaseMs }, decision: applied }
}

export function attach(record: LedgerRecord | null, request: AttachRequest): Step<HolderDecision> {
  if (record === null || record.state !== 'in_progress' || !owns(record, request)) return lost(record)
  return { record: { ...record, pointer: request.pointer }, decision: applied }
}

/** `stored` is the record as the store still has it, also past its end, when it counts as absent. */
export function settle(
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
  const record = isFirst ? knowing(before, factsAfter(before.facts, to.note)) : before
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
export function release(record: LedgerRecord | null, request: ReleaseRequest, at: Moment): Step<HolderDecision> {
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
