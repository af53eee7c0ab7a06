import { sameIdentity } from './identity.ts'
import { FOREVER, limits } from './limits.ts'
import type { LedgerRecord, Succeeded, Unknown, Vacant } from './record.ts'
import type {
  ForgetRequest,
  OperatorDecision,
  ProbeDecision,
  ProbeRequest,
  ReconcileDecision,
  ReplaceDecision,
  ReplaceRequest,
  ResolveRequest,
  UniqueDecision,
  UniqueRequest,
} from './request.ts'
import type { Moment, Step } from './transition-parts.ts'
import {
  abandon,
  common,
  factsAfter,
  grantOf,
  hasLapsed,
  knowing,
  lapse,
  remember,
  retention,
  retryable,
} from './transition-parts.ts'

export function reconcile(record: LedgerRecord | null, at: Moment): Step<ReconcileDecision> {
  if (record?.state === 'in_progress' && hasLapsed(record, at.now)) {
    const after = lapse(record, at)
    return { record: after, decision: { kind: 'lapsed', to: after.state } }
  }
  if (record?.state === 'unknown' && record.abandonAt <= at.now) {
    return { record: abandon(record, at), decision: { kind: 'abandoned' } }
  }
  return { record, decision: { kind: 'unchanged' } }
}

/** Asking has its own fence and leaves the record's alone, so that the attempt's own late word still counts. */
export function probe(record: LedgerRecord | null, request: ProbeRequest, at: Moment): Step<ProbeDecision> {
  if (record?.state !== 'unknown' || at.now < record.probeAt) return { record, decision: { kind: 'unchanged' } }
  const held = record.probe
  const own = held !== null && held.claimId === request.claimId
  if (held !== null && !own && at.now < held.until + limits.leaseGraceMs)
    return { record, decision: { kind: 'unchanged' } }
  const fence = own ? held.fence : at.fence
  const probes = own ? record.probes : record.probes + 1
  const lease = { claimId: request.claimId, fence, until: at.now + request.leaseMs }
  const after: Unknown = { ...record, probes, probe: lease }
  return { record: after, decision: { kind: 'probe_granted', fence, lease: grantOf(after), probes } }
}

export function resolve(record: LedgerRecord | null, request: ResolveRequest, at: Moment): Step<OperatorDecision> {
  const refused = (why: 'not_found' | 'fence_moved' | 'not_resolvable'): Step<OperatorDecision> => ({
    record,
    decision: { kind: 'refused', why },
  })
  if (record === null || record.state === 'vacant') return refused('not_found')
  if (request.ifFence !== null && record.fence !== request.ifFence) return refused('fence_moved')
  // A lapsed lease is resolved as what it has become.
  const current = record.state === 'in_progress' && hasLapsed(record, at.now) ? lapse(record, at) : record
  if (current.state !== 'unknown') return refused('not_resolvable')
  if (request.probeFence !== null && current.probe?.fence !== request.probeFence) return refused('fence_moved')
  return { record: resolved(current, request, at), decision: { kind: 'done' } }
}

function resolved(unknown: Unknown, request: ResolveRequest, at: Moment): LedgerRecord {
  const { to, calls = 0 } = request
  const record = calls === 0 ? unknown : knowing(unknown, factsAfter(unknown.facts, { calls: calls + 1 }))
  if (to.kind === 'cannot_tell') return { ...record, probe: null, probeAt: at.now + to.probeAfterMs }
  const what = request.probeFence === null ? 'resolved' : 'probed'
  const history = remember(record, what, at, `${to.kind} by ${request.by}`)
  const over = { history, fence: at.fence, awaited: false }
  switch (to.kind) {
    case 'succeeded':
      return {
        ...common(record),
        ...retention(record, at.now),
        ...over,
        pointer: to.pointer ?? record.pointer,
        state: 'succeeded',
        outcome: to.outcome,
      }
    case 'failed':
      return {
        ...common(record),
        ...retention(record, at.now),
        ...over,
        state: 'failed_terminal',
        outcome: to.outcome,
      }
    case 'rerun': {
      const fields = { retryAt: at.now, lapsed: false, outcome: { kept: 'outcome', data: null } as const }
      return { ...retryable(record, at.now, fields), ...over }
    }
  }
}

export function forget(record: LedgerRecord | null, request: ForgetRequest, at: Moment): Step<OperatorDecision> {
  if (record === null || record.state === 'vacant') return { record, decision: { kind: 'refused', why: 'not_found' } }
  if (request.ifFence !== null && record.fence !== request.ifFence) {
    return { record, decision: { kind: 'refused', why: 'fence_moved' } }
  }
  if (request.onlyRunning && record.state !== 'in_progress') {
    return { record, decision: { kind: 'refused', why: 'not_resolvable' } }
  }
  const what = request.onlyRunning ? 'released' : 'forgotten'
  const history = remember(record, what, at, `by ${request.by}`)
  const end = { state: 'vacant', goneAt: at.now + limits.vacantMs, forgotten: !request.onlyRunning } as const
  const after: Vacant = { ...common(record), ...end, history, fence: at.fence, awaited: false }
  return { record: after, decision: { kind: 'done' } }
}

/** A permanent claim: settled at once, never expiring. */
export function unique(record: LedgerRecord | null, request: UniqueRequest, at: Moment): Step<UniqueDecision> {
  if (record !== null && !sameIdentity(record.identity, request.identity)) {
    return { record, decision: { kind: 'identity_collision' } }
  }
  if (record?.state === 'succeeded') {
    const owner = record.outcome.data ?? ''
    if (owner === request.owner) return { record, decision: { kind: 'unique_claimed' } }
    return { record, decision: { kind: 'unique_taken', owner, since: record.settledAt } }
  }
  const { id, identity, claimId, owner } = request
  const life = { incarnation: at.fence, fence: at.fence, attempts: 1, claimedAt: at.now, settledAt: at.now }
  const after: Succeeded = {
    state: 'succeeded',
    id,
    identity,
    claimId,
    ...life,
    fingerprint: 'v1:0:unique',
    pointer: null,
    policy: { onAbandoned: 'hold', retainMs: FOREVER, refuseMs: 0, unknownMs: 0 },
    awaited: false,
    history: [],
    outcome: { kept: 'response', data: owner },
    expiresAt: FOREVER,
    goneAt: FOREVER,
  }
  return { record: after, decision: { kind: 'unique_claimed' } }
}

/** Compares with what is stored, whether or not it is past its end: it is the row that is replaced. */
export function replace(stored: LedgerRecord | null, request: ReplaceRequest, at: Moment): Step<ReplaceDecision> {
  if (!sameValue(stored, request.before)) return { record: stored, decision: { kind: 'changed' } }
  const { after } = request
  const isNew = after.fence === 0
  const record = isNew ? { ...after, fence: at.fence, incarnation: at.fence, claimedAt: at.now } : after
  return { record, decision: { kind: 'replaced' } }
}

/** Of plain data, in whatever order its members were written. */
function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const [ofA, ofB] = [Object.entries(a), Object.entries(b)]
  return (
    ofA.length === ofB.length && ofA.every(([name, value]) => sameValue(value, (b as Record<string, unknown>)[name]))
  )
}
