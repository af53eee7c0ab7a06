import type { Fence } from './identity.ts'
import { limits } from './limits.ts'
import type {
  Facts,
  FailedRetryable,
  FailedTerminal,
  HistoryEntry,
  InProgress,
  LedgerRecord,
  Note,
  Outcome,
  Pointer,
  Unknown,
} from './record.ts'
import type { Decision, Grant } from './request.ts'

/** When a request is decided: the store's clock, and the fence that a grant would get. */
export interface Moment {
  readonly now: number
  readonly fence: Fence
}

export interface Step<D extends Decision = Decision> {
  /** The same object as before when nothing changed, so that a store need not write. */
  readonly record: LedgerRecord | null
  readonly decision: D
}

/** The fields that every state carries; a new state starts from these, so no field of the old one can leak into it. */
export function common(r: LedgerRecord) {
  return {
    ...(r.facts === undefined ? {} : { facts: r.facts }),
    id: r.id,
    identity: r.identity,
    fingerprint: r.fingerprint,
    incarnation: r.incarnation,
    fence: r.fence,
    claimId: r.claimId,
    attempts: r.attempts,
    claimedAt: r.claimedAt,
    pointer: r.pointer,
    policy: r.policy,
    awaited: r.awaited,
    history: r.history,
  }
}

/** The facts of a record after an attempt's note. */
export function factsAfter(facts: Facts | undefined, note: Note | undefined): Facts | undefined {
  if (note === undefined) return facts
  const { calls = 1, ...rest } = note
  const { extraCalls: before = 0, ...known } = facts ?? {}
  const extraCalls = before + calls - 1
  const after = { ...known, ...rest, ...(extraCalls === 0 ? {} : { extraCalls }) }
  return Object.keys(after).length === 0 ? undefined : after
}

/** The same record with what is known of it now. */
export function knowing<R extends LedgerRecord>(record: R, facts: Facts | undefined): R {
  if (facts === record.facts) return record
  const { facts: _before, ...rest } = record
  return { ...rest, ...(facts === undefined ? {} : { facts }) } as R
}

/** An attempt that was given back, or lapsed before it began, has called nothing. */
export const NO_CALL: Note = { calls: 0 }

/** Decided by the store's clock alone, a grace after the lease's end: the holder has stopped by then. */
export function hasLapsed(record: InProgress, now: number): boolean {
  return record.leaseUntil + limits.leaseGraceMs <= now
}

export function remember(record: LedgerRecord, what: HistoryEntry['what'], at: Moment, note?: string): HistoryEntry[] {
  const entry: HistoryEntry = {
    at: at.now,
    what,
    attempt: record.attempts,
    fence: record.fence,
    ...(note === undefined ? {} : { note }),
  }
  return [...record.history, entry].slice(-limits.historyEntries)
}

export function grantOf(record: InProgress | Unknown): Grant {
  return {
    id: record.id,
    identity: record.identity,
    fingerprint: record.fingerprint,
    policy: record.policy,
    claimId: record.claimId,
    fence: record.fence,
    incarnation: record.incarnation,
    attempt: record.attempts,
    claimedAt: record.claimedAt,
    leaseUntil: record.state === 'in_progress' ? record.leaseUntil : record.since,
    pointer: record.pointer,
  }
}

/** The record that a grant was given for, as long as nothing unusual has happened to it. */
export function runningUnder(grant: Grant): InProgress {
  const { id, identity, fingerprint, policy, claimId, fence, incarnation, attempt, claimedAt, leaseUntil, pointer } =
    grant
  const owned = {
    id,
    identity,
    fingerprint,
    policy,
    claimId,
    fence,
    incarnation,
    attempts: attempt,
    claimedAt,
    pointer,
  }
  return { ...owned, state: 'in_progress', awaited: false, history: [], started: true, leaseUntil }
}

/** The two ends of a settled record. A window that counts from the claim does not end while its holder still runs. */
export function retention(
  { policy, claimedAt }: Pick<LedgerRecord, 'policy' | 'claimedAt'>,
  now: number,
): { settledAt: number; expiresAt: number; goneAt: number } {
  const from = policy.retainFrom === 'claimed' ? claimedAt : now
  const expiresAt = Math.max(now, from + policy.retainMs)
  return { settledAt: now, expiresAt, goneAt: expiresAt + policy.refuseMs }
}

/**
 * A final outcome by the holder. Written out field by field: an object that is made by spreading several others takes
 * eight times as long and twice the room, and these are made by every command and kept for days.
 */
export function settledAs<S extends 'succeeded' | 'failed_terminal'>(
  state: S,
  record: LedgerRecord,
  { outcome, pointer, now }: { outcome: Outcome; pointer: Pointer | null; now: number },
) {
  const { settledAt, expiresAt, goneAt } = retention(record, now)
  const settled = {
    state,
    id: record.id,
    identity: record.identity,
    fingerprint: record.fingerprint,
    incarnation: record.incarnation,
    fence: record.fence,
    claimId: record.claimId,
    attempts: record.attempts,
    claimedAt: record.claimedAt,
    pointer,
    policy: record.policy,
    awaited: false,
    history: record.history,
    outcome,
    settledAt,
    expiresAt,
    goneAt,
  }
  return record.facts === undefined ? settled : { ...settled, facts: record.facts }
}

/** Nothing happened, so nothing is refused after expiry. */
export function retryable(
  record: LedgerRecord,
  now: number,
  fields: { retryAt: number; lapsed: boolean; outcome: Outcome },
): FailedRetryable {
  const { settledAt, expiresAt } = retention(record, now)
  return { ...common(record), ...fields, state: 'failed_retryable', settledAt, expiresAt, goneAt: expiresAt }
}

export function unknownFrom(record: LedgerRecord, now: number, reason: string | null): Unknown {
  const { policy, claimedAt } = record
  return {
    ...common(record),
    state: 'unknown',
    since: now,
    abandonAt: policy.retainFrom === 'claimed' ? claimedAt + policy.retainMs : now + policy.unknownMs,
    reason,
    probes: 0,
    probeAt: now,
    probe: null,
  }
}

/** What a lease's end means: an effect that may be repeated (or never began) is free again, any other is unknown. */
export function lapse(running: InProgress, at: Moment): Unknown | FailedRetryable {
  const record = running.started ? running : knowing(running, factsAfter(running.facts, NO_CALL))
  const history = remember(record, 'lapsed', at)
  const { onAbandoned } = record.policy
  const free = onAbandoned === 'rerun' || (onAbandoned === 'hold_attached' && record.pointer === null)
  if (record.started && !free) {
    return { ...unknownFrom(record, at.now, null), history }
  }
  const fields = { retryAt: at.now, lapsed: true, outcome: { kept: 'outcome', data: null } as const }
  return { ...retryable(record, at.now, fields), history }
}

/** Text of the codec: a recorded failure that no attempt reported. */
export const ABANDONED_UNKNOWN: Outcome = {
  kept: 'outcome',
  data: JSON.stringify({
    name: 'AbandonedUnknown',
    message: 'The unknown outcome was not resolved in time.',
    code: 'abandoned_unknown',
  }),
}

/**
 * It was not resolved: a terminal failure from here on, and retention starts here. The fence rises, as for an operator.
 */
export function abandon(record: Unknown, at: Moment): FailedTerminal {
  const history = remember(record, 'abandoned', at)
  const end = retention(record, at.now)
  return { ...common(record), ...end, state: 'failed_terminal', outcome: ABANDONED_UNKNOWN, history, fence: at.fence }
}
