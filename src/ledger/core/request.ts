import type { ClaimId, Fence, Identity, RecordId } from './identity.ts'
import type { LedgerRecord, Note, Outcome, Pointer, Policy, State } from './record.ts'

/** Everything that can be asked of a record. One pure function, `transition`, answers all of it. */
export type Request =
  | ClaimRequest
  | StartRequest
  | RenewRequest
  | AttachRequest
  | SettleRequest
  | ReleaseRequest
  | ReconcileRequest
  | ProbeRequest
  | ResolveRequest
  | ForgetRequest
  | UniqueRequest
  | ReplaceRequest

export interface ClaimRequest {
  readonly kind: 'claim'
  readonly id: RecordId
  readonly identity: Identity
  /** Chosen before the write, so that an acknowledgement that we lost is recognised as our own claim. */
  readonly claimId: ClaimId
  /** The input under every shape that the operation knows; the first is the one to record. */
  readonly fingerprints: readonly [string, ...string[]]
  /** A record of another shape cannot be compared: refuse it like another payload. Left out, it is replayed. */
  readonly refuseUnverified?: boolean
  readonly leaseMs: number
  /** False reserves only: the effect may not begin before `start`. */
  readonly start: boolean
  /** The caller will wait for a running attempt, so that attempt must wake it. */
  readonly wait: boolean
  readonly policy: Policy
}

/** What the owner of a lease knows of it: enough to write the record again if the store lost it. */
export interface Grant {
  readonly id: RecordId
  readonly identity: Identity
  readonly fingerprint: string
  readonly policy: Policy
  readonly claimId: ClaimId
  readonly fence: Fence
  readonly incarnation: Fence
  readonly attempt: number
  readonly claimedAt: number
  readonly leaseUntil: number
  /** Left by an earlier attempt of the same incarnation. */
  readonly pointer: Pointer | null
}

interface HolderRequest {
  readonly id: RecordId
  readonly claimId: ClaimId
  readonly fence: Fence
}

export interface StartRequest extends HolderRequest {
  readonly kind: 'start'
  readonly leaseMs: number
}

export interface RenewRequest extends HolderRequest {
  readonly kind: 'renew'
  readonly leaseMs: number
}

export interface AttachRequest extends HolderRequest {
  readonly kind: 'attach'
  /** Of the grant; an encrypted store binds the pointer to it. */
  readonly incarnation?: Fence
  readonly pointer: Pointer
}

export type Settlement = SettlementState & {
  /** Left out when the attempt made its one call and has nothing to report. */
  readonly note?: Note
}

type SettlementState =
  | { readonly state: 'succeeded'; readonly outcome: Outcome }
  | { readonly state: 'failed_terminal'; readonly outcome: Outcome }
  | { readonly state: 'failed_retryable'; readonly outcome: Outcome; readonly retryAfterMs: number }
  | { readonly state: 'unknown'; readonly reason: string | null }

export interface SettleRequest {
  readonly kind: 'settle'
  readonly id: RecordId
  readonly grant: Grant
  readonly to: Settlement
  /** Null leaves the attached one in place. */
  readonly pointer: Pointer | null
}

/** The holder gives its claim back before the effect began, also when it never learnt whether the claim was granted. */
export interface ReleaseRequest {
  readonly kind: 'release'
  readonly id: RecordId
  readonly identity: Identity
  readonly claimId: ClaimId
  readonly fingerprint: string
  readonly policy: Policy
}

/** Applies what time has decided: a lapsed lease, an unresolved unknown outcome. */
export interface ReconcileRequest {
  readonly kind: 'reconcile'
  readonly id: RecordId
}

export interface ProbeRequest {
  readonly kind: 'probe'
  readonly id: RecordId
  readonly claimId: ClaimId
  readonly leaseMs: number
}

export type Resolution =
  /** Without a pointer the attached one stays. */
  | { readonly kind: 'succeeded'; readonly outcome: Outcome; readonly pointer?: Pointer | null }
  | { readonly kind: 'failed'; readonly outcome: Outcome }
  | { readonly kind: 'rerun' }
  /** Only a probe answers so: it is asked again later. */
  | { readonly kind: 'cannot_tell'; readonly probeAfterMs: number }

export interface ResolveRequest {
  readonly kind: 'resolve'
  readonly id: RecordId
  readonly by: string
  /** A person may insist on the fence that was looked at; a probe must still hold its own. */
  readonly ifFence: Fence | null
  readonly probeFence: Fence | null
  readonly to: Resolution
  /** Calls of another system that the probe began, where asking means calling it again. */
  readonly calls?: number
}

/** A person's way to free an identity: `release` a running claim (effect keys stay), or `forget` the whole record. */
export interface ForgetRequest {
  readonly kind: 'forget'
  readonly id: RecordId
  readonly by: string
  readonly ifFence: Fence | null
  readonly onlyRunning: boolean
}

/** A permanent claim on a business value; it outlives every retention. */
export interface UniqueRequest {
  readonly kind: 'unique'
  readonly id: RecordId
  readonly identity: Identity
  readonly claimId: ClaimId
  /** The owner of the claim: the same owner may claim again. */
  readonly owner: string
}

/**
 * Writes a record as it is given, if the stored one is still `before`. No command asks for it: it encrypts records again,
 * and removes what a record says about a person while its key stays taken.
 */
export interface ReplaceRequest {
  readonly kind: 'replace'
  readonly id: RecordId
  readonly before: LedgerRecord | null
  /** A fence of 0 stands for a new one. */
  readonly after: LedgerRecord
}

export type ClaimDecision =
  /** `expired`: a record of this identity was still there, past its end. One that was swept is not known any more. */
  | { readonly kind: 'first_attempt'; readonly lease: Grant; readonly verified: boolean; readonly expired?: true }
  | { readonly kind: 'reclaimed'; readonly lease: Grant; readonly verified: boolean }
  | { readonly kind: 'replay_success'; readonly outcome: Outcome; readonly verified: boolean }
  | { readonly kind: 'replay_failure'; readonly outcome: Outcome; readonly verified: boolean }
  | {
      readonly kind: 'in_progress'
      readonly attempt: number
      readonly retryAfterMs: number
      readonly verified: boolean
    }
  | {
      readonly kind: 'retry_later'
      readonly retryAt: number
      readonly retryAfterMs: number
      readonly verified: boolean
    }
  | { readonly kind: 'key_reused'; readonly recorded: string; readonly presented: string }
  | { readonly kind: 'outcome_unknown'; readonly since: number; readonly attempts: number; readonly verified: boolean }
  | { readonly kind: 'key_expired'; readonly verified: boolean }
  | { readonly kind: 'identity_collision' }

export type HolderDecision =
  /** `recordLost`: the store had forgotten the record, and the settle wrote it again. */
  | { readonly kind: 'applied'; readonly recordLost: boolean }
  /** `conflict`: the late outcome contradicts what is recorded. `state` is what the record is instead. */
  | { readonly kind: 'lease_lost'; readonly state: State | 'absent'; readonly conflict: boolean }

export type ReconcileDecision =
  | { readonly kind: 'lapsed'; readonly to: 'unknown' | 'failed_retryable' }
  | { readonly kind: 'abandoned' }
  | { readonly kind: 'unchanged' }

export type ProbeDecision =
  | { readonly kind: 'probe_granted'; readonly fence: Fence; readonly lease: Grant; readonly probes: number }
  | { readonly kind: 'unchanged' }

export type OperatorDecision =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly why: 'not_found' | 'fence_moved' | 'not_resolvable' }

export type UniqueDecision =
  | { readonly kind: 'unique_claimed' }
  | { readonly kind: 'unique_taken'; readonly owner: string; readonly since: number }
  | { readonly kind: 'identity_collision' }

export type ReplaceDecision = { readonly kind: 'replaced' } | { readonly kind: 'changed' }

interface Decisions {
  claim: ClaimDecision
  start: HolderDecision
  renew: HolderDecision
  attach: HolderDecision
  settle: HolderDecision
  release: HolderDecision
  reconcile: ReconcileDecision
  probe: ProbeDecision
  resolve: OperatorDecision
  forget: OperatorDecision
  unique: UniqueDecision
  replace: ReplaceDecision
}

export type DecisionOf<R extends Request> = Decisions[R['kind']]
export type Decision = Decisions[keyof Decisions]
