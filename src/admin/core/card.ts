import { decodeValue } from '../../ledger/core/codec.ts'
import type { Fence, Identity } from '../../ledger/core/identity.ts'
import { effectKeyOf } from '../../ledger/core/identity.ts'
import { FOREVER } from '../../ledger/core/limits.ts'
import type { Facts, Kept, LedgerRecord, Pointer, State } from '../../ledger/core/record.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { RecordView } from '../../ledger/store/port.ts'

/** A record as operators see it: plain data, whatever its state. Times are the store's, in milliseconds. */
export interface Card {
  readonly id: string
  readonly identity: Identity
  readonly state: State
  /** Past its end: it answers no retry any more, and the sweep removes it. */
  readonly expired: boolean
  readonly attempts: number
  readonly fence: Fence
  readonly fingerprint: string
  readonly effectKey: string
  readonly pointer: Pointer | null
  readonly claimedAt: number
  readonly leaseUntil: number | null
  readonly settledAt: number | null
  readonly retryAt: number | null
  readonly unknownSince: number | null
  /** Null: never. */
  readonly expiresAt: number | null
  /** Calls of other systems that its attempts began, and probes that repeat them. */
  readonly calls: number
  readonly replays: number
  readonly conflicts: number
  readonly inProgress: number
  /** When it was last repeated. */
  readonly repeatedAt: number | null
  readonly failure: Failure | null
  /** What its attempts noted about themselves. */
  readonly facts: Facts | null
  readonly kept: Kept | null
}

/** One thing that happened to a record. */
export interface Moment {
  readonly at: number
  readonly what: string
  readonly note: string | null
}

type Counts = Omit<RecordView, 'record'>

/** Of a record that was read without its counts. */
export const uncounted: Counts = { replays: 0, conflicts: 0, inProgress: 0, repeatedAt: null }

export function cardOf(record: LedgerRecord, counts: Counts, now: number): Card {
  const { id, identity, state, attempts, fence, fingerprint, incarnation, pointer, claimedAt, facts = null } = record
  const { replays, conflicts, inProgress, repeatedAt } = counts
  const expiresAt = 'expiresAt' in record ? record.expiresAt : state === 'vacant' ? record.goneAt : null
  return {
    id,
    identity,
    state,
    expired: expiresAt !== null && expiresAt <= now,
    attempts,
    fence,
    fingerprint,
    effectKey: effectKeyOf(id, incarnation),
    pointer,
    claimedAt,
    leaseUntil: state === 'in_progress' ? record.leaseUntil : null,
    settledAt: 'settledAt' in record ? record.settledAt : null,
    retryAt: state === 'failed_retryable' ? record.retryAt : null,
    unknownSince: state === 'unknown' ? record.since : null,
    expiresAt: expiresAt === FOREVER ? null : expiresAt,
    calls: attempts + (facts?.extraCalls ?? 0),
    replays,
    conflicts,
    inProgress,
    repeatedAt,
    failure: failureOf(record),
    facts,
    kept: 'outcome' in record ? record.outcome.kept : null,
  }
}

function failureOf(record: LedgerRecord): Failure | null {
  switch (record.state) {
    case 'failed_terminal':
    case 'failed_retryable':
      return record.outcome.data === null ? null : unpackFailure(record.outcome.data).failure
    case 'unknown':
      return record.reason === null ? null : unpackFailure(record.reason).failure
    case 'in_progress':
    case 'succeeded':
    case 'vacant':
      return null
  }
}

/** Its life, oldest first. Renewed leases leave no trace; of repeats, their count and the time of the last one. */
export function timelineOf(record: LedgerRecord, counts: Counts): readonly Moment[] {
  const moments: Moment[] = [{ at: record.claimedAt, what: 'claimed', note: `attempt ${record.attempts}` }]
  for (const { at, what, attempt, note } of record.history) {
    moments.push({ at, what, note: note === undefined ? `attempt ${attempt}` : `attempt ${attempt}: ${note}` })
  }
  switch (record.state) {
    case 'in_progress':
      moments.push({ at: record.leaseUntil, what: 'lease ends', note: record.started ? null : 'reserved, not begun' })
      break
    case 'succeeded':
    case 'failed_terminal':
    case 'failed_retryable':
      moments.push({ at: record.settledAt, what: record.state, note: countsNote(counts) })
      if (record.expiresAt !== FOREVER) moments.push({ at: record.expiresAt, what: 'expires', note: null })
      break
    case 'unknown':
      moments.push({ at: record.since, what: 'unknown', note: `${record.probes} probes` })
      moments.push({ at: record.abandonAt, what: 'given up', note: 'unless it is resolved' })
      break
    case 'vacant':
      moments.push({ at: record.goneAt, what: 'trace removed', note: null })
      break
  }
  if (counts.repeatedAt !== null) moments.push({ at: counts.repeatedAt, what: 'last repeat', note: null })
  return moments.toSorted((a, b) => a.at - b.at)
}

function countsNote({ replays, conflicts, inProgress }: Counts): string | null {
  const times = (count: number) => (count === 1 ? 'once' : `${count} times`)
  const parts = [
    replays > 0 && `replayed ${times(replays)}`,
    inProgress > 0 && `refused ${times(inProgress)} while it ran`,
    conflicts > 0 && `refused ${times(conflicts)} for another payload`,
  ]
  return parts.filter(Boolean).join(', ') || null
}

/** What a record answers its retries with, as text for people. Never to be shown as anything else than text. */
export function answerOf(record: LedgerRecord): string | null {
  if (!('outcome' in record) || record.outcome.data === null) return null
  try {
    return JSON.stringify(decodeValue(record.outcome.data), textual, 2)
  } catch {
    return record.outcome.data
  }
}

/** Bytes of a body are shown as the text they usually are; the holder has them as they were before a Buffer's `toJSON`. */
function textual(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  const given = this[name]
  return given instanceof Uint8Array ? new TextDecoder().decode(given) : value
}
