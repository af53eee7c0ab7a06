import type { Failure } from '../../ledger/core/verdict.ts'
import type { First, ParkReason } from './receipt.ts'

interface OfMessage {
  readonly consumer: string
  readonly id: string
  readonly topic: string
}

/** Events of an inbox, for telemetry, logs and tests. No product code decides by them. */
export type InboxEvent =
  | (OfMessage & { readonly kind: 'handled'; readonly delivery: number | null })
  | (OfMessage & { readonly kind: 'duplicate'; readonly by: 'id' | 'intent'; readonly first: First })
  /** `kept` is false when the message has as many dead letters of this kind as it may have. */
  | (OfMessage & {
      readonly kind: 'conflict'
      readonly recorded: string
      readonly presented: string
      readonly kept: boolean
    })
  | (OfMessage & {
      readonly kind: 'failed'
      readonly failures: number
      readonly error: unknown
      readonly retryAfterMs: number
    })
  | (OfMessage & { readonly kind: 'parked'; readonly reason: ParkReason; readonly failure: Failure | null })
  | (OfMessage & { readonly kind: 'waiting'; readonly expected: number; readonly sequence: number })
  /**
   * Put off without a failure: an outage, a twin that still runs, or, when it is `wished`, the effect's own request.
   */
  | (OfMessage & {
      readonly kind: 'postponed'
      readonly wished: boolean
      readonly delivery: number | null
      readonly error: unknown
      readonly delayMs: number
    })
  | (OfMessage & { readonly kind: 'redriven'; readonly by: string })
  | { readonly kind: 'purged'; readonly consumer: string; readonly letters: number; readonly by: string }
  | { readonly kind: 'warning'; readonly consumer: string; readonly warning: InboxWarning }
  | { readonly kind: 'background_failed'; readonly consumer: string; readonly what: string; readonly error: unknown }

export type InboxWarning =
  /** The broker may hand over a message again when the inbox has forgotten it. */
  | {
      readonly what: 'window_too_short'
      readonly windowMs: number
      readonly redeliveryHorizonMs: number
      readonly subscriber: string
    }
  /** Numbers of a key never came; the inbox continued without them, or parked what waited for them. */
  | {
      readonly what: 'hole'
      readonly key: string
      readonly expected: number
      readonly sequence: number
      readonly waitedMs: number
    }

export type InboxListener = (event: InboxEvent) => void
