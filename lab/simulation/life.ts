import type { ClaimId, Fence } from '../../src/ledger/core/identity.ts'
import type { InProgress, LedgerRecord, Outcome, Pointer } from '../../src/ledger/core/record.ts'
import type { Decision, Request } from '../../src/ledger/core/request.ts'
import type { EffectContext } from '../../src/ledger/effect-context.ts'
import type { SimulatedProcess } from '../../test/support/simulation.ts'
import type { CommandPlan } from './scenario.ts'

/** What really happened to one identity, kept beside the store, so that a ledger that forgets is found out. */
export interface Life {
  readonly command: CommandPlan
  /** The record after its last change. */
  last: LedgerRecord | null
  topFence: Fence
  readonly outcomes: Recorded[]
  /**
   * Incarnations whose effect began, with the fence it began under, until a probe or an operator said that it did not
   * happen.
   */
  readonly mayHaveRun: Map<Fence, Fence>
  /** How often an operator allowed another effect of an incarnation: what follows is the operator's responsibility. */
  readonly excuses: Map<Fence, number>
  /** Fences that an operator took away from their holders. */
  readonly revoked: Set<Fence>
  readonly effectKeys: Map<Fence, string>
  /** Claims that joined a running attempt, with the fence of that attempt. */
  readonly joined: Map<ClaimId, Fence>
  /** Fences whose lease had lapsed, unnoticed, when their holder said its word after all. */
  readonly late: Set<Fence>
  /** Fences that were granted after an attempt had failed retryably in time, with the fence of that attempt. */
  readonly follows: Map<Fence, Fence>
  /** The last claim, if its holder gave it back. Late copies of older ones cannot be distinguished from new claims. */
  givenBack: ClaimId | null
  readonly running: Set<RunningEffect>
}

/** An outcome, and from when until when it was to be replayed, by the store's clock. */
export interface Recorded {
  readonly state: 'succeeded' | 'failed_terminal'
  readonly fence: Fence
  readonly fingerprint: string
  readonly outcome: Outcome
  readonly pointer: Pointer | null
  readonly fromMs: number
  untilMs: number
}

export interface RunningEffect {
  readonly attempt: EffectContext
  readonly process: SimulatedProcess
  readonly host: string
  readonly call: string
  readonly startedMs: number
  readonly joins: boolean
  /** Null while it runs. */
  ended: {
    readonly how: 'returned' | 'threw'
    readonly retryable: boolean
    readonly atMs: number
    /** Its lease still held. */
    readonly inTime: boolean
  } | null
}

/** One decision of the store, with the record before and after it. */
export interface Seen {
  readonly life: Life
  /** As stored, also when it is past its end. */
  readonly before: LedgerRecord | null
  /** As it stands: null when it is past its end. */
  readonly standing: LedgerRecord | null
  readonly request: Request
  readonly decision: Decision
  readonly after: LedgerRecord | null
  readonly now: number
}

export function createLife(command: CommandPlan): Life {
  return {
    command,
    last: null,
    topFence: 0,
    outcomes: [],
    mayHaveRun: new Map(),
    excuses: new Map(),
    revoked: new Set(),
    effectKeys: new Map(),
    joined: new Map(),
    late: new Set(),
    follows: new Map(),
    givenBack: null,
    running: new Set(),
  }
}

/** Written independently of the code under test. */
export function standingAt(record: LedgerRecord | null, now: number): LedgerRecord | null {
  if (record === null || record.state === 'in_progress' || record.state === 'unknown') return record
  return record.goneAt <= now ? null : record
}

/** An attempt whose effect may have happened, and may not simply be repeated, if its lease lapses now. */
export function isHeld(record: InProgress): boolean {
  const { onAbandoned } = record.policy
  if (!record.started || onAbandoned === 'rerun') return false
  return onAbandoned !== 'hold_attached' || record.pointer !== null
}

export function isGrant(decision: Decision): boolean {
  return decision.kind === 'first_attempt' || decision.kind === 'reclaimed'
}

export function recordText(record: LedgerRecord | null): string {
  return record === null ? 'nothing' : `${record.state} under fence ${record.fence}, attempt ${record.attempts}`
}
