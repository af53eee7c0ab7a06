import type { Listeners } from '../runtime/listeners.ts'
import type { OnceError } from './core/errors.ts'
import type { Fence, Identity } from './core/identity.ts'
import type { State, VisibleState } from './core/record.ts'

/** Events of a ledger, for telemetry, logs and tests. No product code decides by them. */
export type LedgerEvent =
  | {
      readonly kind: 'claimed'
      readonly identity: Identity
      readonly attempt: number
      readonly fence: Fence
      readonly reclaimed: boolean
      /** The record before it had expired, and was still there. */
      readonly expired: boolean
    }
  | { readonly kind: 'settled'; readonly identity: Identity; readonly state: VisibleState; readonly attempt: number }
  | {
      readonly kind: 'replayed'
      readonly identity: Identity
      readonly state: 'succeeded' | 'failed_terminal'
      readonly cached: boolean
    }
  /** It waited for a running twin, and shares its outcome. Null: for one of another process. */
  | { readonly kind: 'joined'; readonly identity: Identity; readonly waitedMs: number | null }
  | { readonly kind: 'in_progress'; readonly identity: Identity }
  | { readonly kind: 'retry_later'; readonly identity: Identity; readonly retryAfterMs: number }
  | { readonly kind: 'key_reused'; readonly identity: Identity; readonly recorded: string; readonly presented: string }
  | { readonly kind: 'key_expired'; readonly identity: Identity }
  | { readonly kind: 'outcome_unknown'; readonly identity: Identity; readonly since: number }
  | { readonly kind: 'not_authorized'; readonly identity: Identity }
  | { readonly kind: 'fingerprint_unverified'; readonly identity: Identity }
  | { readonly kind: 'outcome_not_stored'; readonly identity: Identity; readonly why: string }
  | { readonly kind: 'lease_over'; readonly identity: Identity; readonly fence: Fence }
  | {
      readonly kind: 'lease_lost'
      readonly identity: Identity
      readonly fence: Fence
      readonly state: State | 'absent'
    }
  | {
      readonly kind: 'late_outcome_conflict'
      readonly identity: Identity
      readonly fence: Fence
      readonly state: State | 'absent'
    }
  | { readonly kind: 'record_lost'; readonly identity: Identity; readonly fence: Fence }
  | {
      readonly kind: 'settle_failed'
      readonly identity: Identity
      readonly error: OnceError
      readonly retrying: boolean
    }
  | { readonly kind: 'lapsed'; readonly identity: Identity; readonly to: 'unknown' | 'failed_retryable' }
  | { readonly kind: 'probed'; readonly identity: Identity; readonly answer: string }
  | { readonly kind: 'abandoned_unknown'; readonly identity: Identity }
  | { readonly kind: 'resolved' | 'released' | 'forgotten'; readonly identity: Identity; readonly by: string }
  | { readonly kind: 'swept'; readonly removed: number }
  | { readonly kind: 'background_failed'; readonly what: string; readonly error: unknown }

export type Listener = (event: LedgerEvent) => void

export type Events = Listeners<LedgerEvent>
