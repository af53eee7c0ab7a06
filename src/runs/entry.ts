import type { Failure } from '../ledger/core/verdict.ts'

/** The fingerprint of a line that a fork copied: other code or another input made it, and nothing is compared with it. */
export const COPIED = ''

/** One line of a run's journal: the state of one execution of one step. */
export interface Entry {
  readonly key: string
  /** Order of first appearance in the run; within one branch it is the order of execution. */
  readonly position: number
  readonly branch: string
  readonly stepId: string
  readonly tick: number
  readonly kind: EntryKind
  readonly state: EntryState
  readonly attempts: number
  /** When the next attempt, the end of a sleep or of a wait is due, by the store's clock. */
  readonly dueAt: number | null
  /** Of the declared input, or of what a channel step planned; null where nothing is compared, `COPIED` in a fork. */
  readonly fingerprint: string | null
  /** What a channel was asked to do, encoded. */
  readonly plan: string | null
  /** Encoded; only when it succeeded. */
  readonly result: string | null
  readonly failures: readonly AttemptFailure[]
  /** Times, numbers and versions that the body asked for since the entry before this one. */
  readonly values: readonly RecordedValue[]
  readonly at: number
  /** The step that may have begun behind this one without a line of its own, because this line announced it. */
  readonly leadsTo: string | null
}

/**
 * `all` and `end` stand in a journal only to keep the values that the body asked for before its branches, or at an end.
 */
export type EntryKind =
  | 'step'
  | 'channel'
  | 'sleep'
  | 'signal'
  | 'child'
  | 'clean-up'
  | 'event'
  | 'attributes'
  | 'race'
  | 'all'
  | 'end'

/**
 * `intent`: about to act; no process may act again without a check. `retrying`: failed for now. `waiting`: a sleep, a
 * signal or a child. `unknown`: may have happened; an operator or a probe decides. The others are final.
 */
export type EntryState = 'intent' | 'retrying' | 'waiting' | 'unknown' | 'succeeded' | 'failed' | 'abandoned'

/** True while the step can still change. */
export function isOpen(state: EntryState): boolean {
  return state === 'intent' || state === 'retrying' || state === 'waiting' || state === 'unknown'
}

/** A step that a fork has copied as failed, and that was resumed there: the fork begins it anew, as its own code says. */
export function asBegun(entry: Entry): Entry {
  if (entry.state !== 'retrying' || entry.fingerprint !== COPIED) return entry
  return { ...entry, plan: null, failures: [] }
}

export interface AttemptFailure extends Failure {
  /** Counts the failures of a step from 1, also over those that are not remembered and over a resume. */
  readonly number: number
  readonly attempt: number
  /** When the attempt began. */
  readonly at: number
  /** It was proven that nothing happened; otherwise the outcome is unknown. */
  readonly definite: boolean
}

/** What a body may ask for that is another thing each time. */
export interface ValueTypes {
  readonly now: number
  readonly random: number
  readonly uuid: string
}

export type RecordedValue =
  | { readonly [K in keyof ValueTypes]: { readonly kind: K; readonly value: ValueTypes[K] } }[keyof ValueTypes]
  /** A change that the code of this run knows. */
  | { readonly kind: 'version'; readonly value: string }

/** `queued`: it has not begun, because its queue has not let it in. */
export type RunState = 'queued' | 'running' | 'sleeping' | 'unknown' | 'succeeded' | 'failed' | 'cancelled'

/** A run as it stands in the store. */
export interface RunRow {
  readonly id: string
  readonly definition: string
  readonly version: number
  readonly state: RunState
  /** Encoded. */
  readonly input: string
  readonly inputFingerprint: string
  readonly result: string | null
  readonly failure: Failure | null
  readonly worker: string | null
  readonly fence: number
  /** When a worker should take it; null while one has it, and when only an operator or a signal can wake it. */
  readonly dueAt: number | null
  /** Since when its worker has it; null when it was put down in order. */
  readonly takenAt: number | null
  /** Since when workers before had it who never put it down: whatever they were doing may have happened since then. */
  readonly takenBefore: number | null
  readonly startedAt: number
  readonly endedAt: number | null
  /** The run that this one repeats. */
  readonly restarts: string | null
  /** Workers that ended one after the other while they had it, and nothing was recorded in between. */
  readonly takeovers: number
  /** How long it may take, from its start or from when its queue let it in; null for as long as it wants. */
  readonly timeoutMs: number | null
  /** When it fails unless it has ended; null while nothing limits it. */
  readonly deadlineAt: number | null
  /** Its place in a queue; null for a run that was started. */
  readonly queue: QueuePlace | null
  /** The run whose step it is. */
  readonly parent: string | null
  readonly ifParentEnds: IfParentEnds | null
  /** Since when it is cancelled, or its time was over: from then on it only cleans up after itself. */
  readonly cancelledAt: number | null
  /** Its time was over: it fails behind its clean-ups. */
  readonly timedOut: boolean
  /** The key of the step that it was forked at, and the run of that step. */
  readonly forkedFrom: string | null
  /** The run that it continues, and the one that continues it. */
  readonly continues: string | null
  readonly continuedAs: string | null
}

/** Where a run stands in its queue. */
export interface QueuePlace {
  /** The queue. */
  readonly name: string
  /** What it shares the places of its key with; empty without a key. */
  readonly key: string
  readonly dedupKey: string | null
  readonly priority: number
  /** Before that it was not to begin. */
  readonly readyAt: number
  /** When the queue let it in; null while it waits. */
  readonly admittedAt: number | null
}

/** What becomes of a child when its parent ends before it, or when its branch loses a race. */
export type IfParentEnds = 'cancel' | 'continue'

/** The writer: a run as one worker took it. A worker that lost it has an older fence, and writes nothing. */
export interface Holder {
  readonly runId: string
  readonly fence: number
}

export interface SignalRow {
  readonly id: string
  readonly name: string
  readonly number: number
  /** Encoded. */
  readonly payload: string
}

/** What a run is found by. */
export type AttributeValue = string | number | boolean

/** By their names; null removes one. */
export type Attributes = Readonly<Record<string, AttributeValue | null>>

/** Lets runs begin within limits that hold over all processes. */
export interface Queue {
  readonly name: string
  /** Runs at once; null for as many as there are places in processes. */
  readonly concurrency: number | null
  /** Runs of one key at once; null for as many as the queue has. */
  readonly perKey: number | null
  /** Runs that begin within a span; null for as many as there are. */
  readonly rate: QueueRate | null
  /** Of runs that are enqueued without one. */
  readonly priority: number
}

/** So many runs begin within any span of so many milliseconds. */
export interface QueueRate {
  readonly limit: number
  readonly perMs: number
}
