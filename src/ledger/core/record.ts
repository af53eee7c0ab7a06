import type { ClaimId, Fence, Identity, RecordId } from './identity.ts'

/** Names a thing of the user's: what an attempt made, or will make. */
export interface Pointer {
  readonly type: string
  readonly id: string
}

/** How much of the effect's result a record keeps. `not_stored` is a result that could not be kept. */
export type Kept = 'response' | 'pointer' | 'outcome' | 'not_stored'

/** What a settled record remembers: text of the codec, or nothing. */
export interface Outcome {
  readonly kept: Kept
  readonly data: string | null
}

/**
 * What a lapsed attempt leaves behind: free for another, or an unknown that a person or a probe resolves.
 * `hold_attached` holds only what has attached a pointer: an attempt that named what it makes is not repeated.
 */
export type OnAbandoned = 'rerun' | 'hold' | 'probe' | 'hold_attached'

/** The part of an operation's definition that must be known without its code: by other processes, and by operators. */
export interface Policy {
  readonly onAbandoned: OnAbandoned
  readonly retainMs: number
  /** Retention counts from settling; a content guard's window counts from its claim, and nothing extends it. */
  readonly retainFrom?: 'claimed'
  /** How long an expired key is refused; 0 means that it is a new key at once. */
  readonly refuseMs: number
  readonly unknownMs: number
}

/** The unusual things that happened to a record. The usual ones are its own fields. */
export interface HistoryEntry {
  readonly at: number
  readonly what:
    | 'reclaimed'
    | 'lapsed'
    | 'superseded'
    | 'resolved'
    | 'released'
    | 'forgotten'
    | 'probed'
    | 'abandoned'
    | 'lost'
  readonly attempt: number
  readonly fence: Fence
  readonly note?: string
}

/** What the attempts of a record noted about themselves, for operators. Absent where nothing was unusual. */
export interface Facts extends Omit<Note, 'calls'> {
  /** Calls of other systems beyond one for each attempt; negative where attempts ended without one. */
  readonly extraCalls?: number
}

/** What one attempt notes about itself; it is recorded with the attempt's outcome. */
export interface Note {
  /** Calls of other systems that the attempt really began; one, when it says nothing. */
  readonly calls?: number
  /** The system that was called. */
  readonly provider?: string
  /** By which name the other system knows the call, where that is not the effect key. */
  readonly reference?: string
  /** What stood in the way: a value that must be unique belongs to it already. */
  readonly taken?: string
  /** What the content guard decided before the effect began. */
  readonly guard?: GuardNote
}

export interface GuardNote {
  readonly operation: string
  readonly hash: string
  readonly windowMs: number
  /** False: it was let through without its lock. */
  readonly guarded: boolean
  /** Of a duplicate: the original that it was answered with. */
  readonly original?: string
  /** When the window began, where that is not the claim of the record. */
  readonly since?: number
}

interface RecordBase {
  readonly id: RecordId
  readonly identity: Identity
  readonly fingerprint: string
  /** The first fence of this life of the record: effect keys derive from it. */
  readonly incarnation: Fence
  /** The fence of the current owner. Only a settle under it, with its claim id, can change the record. */
  readonly fence: Fence
  readonly claimId: ClaimId
  readonly attempts: number
  readonly claimedAt: number
  readonly pointer: Pointer | null
  readonly policy: Policy
  /** A twin waits for this attempt: the process that changes the record wakes it. */
  readonly awaited: boolean
  readonly history: readonly HistoryEntry[]
  readonly facts?: Facts
}

export interface InProgress extends RecordBase {
  readonly state: 'in_progress'
  /** False while only reserved: the effect cannot have begun. */
  readonly started: boolean
  readonly leaseUntil: number
}

interface Settled extends RecordBase {
  readonly outcome: Outcome
  readonly settledAt: number
  /** From here on the outcome is not replayed. */
  readonly expiresAt: number
  /** From here on the record does not exist; between the two the key is refused. */
  readonly goneAt: number
}

export interface Succeeded extends Settled {
  readonly state: 'succeeded'
}

export interface FailedTerminal extends Settled {
  readonly state: 'failed_terminal'
}

export interface FailedRetryable extends Settled {
  readonly state: 'failed_retryable'
  readonly retryAt: number
  /** The lease ended without a word: a late settle of that attempt still counts. */
  readonly lapsed: boolean
}

/** One process at a time may ask whether an unknown effect happened. */
export interface ProbeLease {
  readonly claimId: ClaimId
  readonly fence: Fence
  readonly until: number
}

export interface Unknown extends RecordBase {
  readonly state: 'unknown'
  readonly since: number
  /** From here on it counts as a terminal failure, `abandoned_unknown`. */
  readonly abandonAt: number
  /** What the attempt threw, encoded; null when it vanished. */
  readonly reason: string | null
  readonly probes: number
  readonly probeAt: number
  readonly probe: ProbeLease | null
}

/** Released or forgotten: no claim sees it, but its fence still stops the attempt that it belonged to. */
export interface Vacant extends RecordBase {
  readonly state: 'vacant'
  readonly goneAt: number
  /** A released identity keeps its effect keys for the same payload; a forgotten one gets new ones. */
  readonly forgotten: boolean
}

export type LedgerRecord = InProgress | Succeeded | FailedTerminal | FailedRetryable | Unknown | Vacant
export type State = LedgerRecord['state']

/** The states that operators see and count. */
export type VisibleState = Exclude<State, 'vacant'>

export const visibleStates = [
  'in_progress',
  'succeeded',
  'failed_terminal',
  'failed_retryable',
  'unknown',
] as const satisfies readonly VisibleState[]

/** The time from which the record does not exist any more, or null while only an event can end it. */
export function goneAtOf(record: LedgerRecord): number | null {
  switch (record.state) {
    case 'in_progress':
    case 'unknown':
      return null
    case 'succeeded':
    case 'failed_terminal':
    case 'failed_retryable':
    case 'vacant':
      return record.goneAt
  }
}

/** True when those who wait for `before` must look again. */
export function wakesWaiters(before: LedgerRecord | null, after: LedgerRecord | null): boolean {
  if (before === null || !before.awaited || before === after) return false
  return (
    after === null || after.state !== before.state || after.fence !== before.fence || after.pointer !== before.pointer
  )
}
