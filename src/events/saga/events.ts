import type { IgnoredWhy } from './history.ts'

interface OfInstance {
  readonly saga: string
  readonly id: string
}

interface OfEvent extends OfInstance {
  readonly event: string
  readonly messageId: string
}

/** Events of a saga, after commit. No product code decides by them. */
export type SagaEvent =
  | (OfEvent & {
      readonly kind: 'handled'
      readonly from: string
      readonly path: readonly string[]
      readonly emitted: number
    })
  /** Behind `handled`: the instance has ended in a state that the definition calls failed. */
  | (OfEvent & { readonly kind: 'instance_failed'; readonly state: string })
  | (OfEvent & {
      readonly kind: 'ignored'
      readonly state: string
      readonly why: IgnoredWhy
      readonly because: string | null
    })
  | (OfEvent & { readonly kind: 'deferred'; readonly state: string })
  | (OfEvent & { readonly kind: 'warned'; readonly warning: string })
  /** Another event changed the instance first. It is handled again on fresh state, or `exhausted` and put off. */
  | (OfEvent & { readonly kind: 'conflict'; readonly tries: number; readonly exhausted: boolean })
  /** The handler failed, or the table says that the event must not come here. The inbox counts it. */
  | (OfEvent & { readonly kind: 'failed'; readonly error: unknown })
  | { readonly kind: 'swept'; readonly saga: string; readonly removed: number }
  /** Deferred events whose instance never began. */
  | (OfInstance & { readonly kind: 'expired'; readonly deferred: number })
  /** The broker may hand over a message again when the inbox has forgotten it. */
  | {
      readonly kind: 'window_too_short'
      readonly saga: string
      readonly windowMs: number
      readonly redeliveryHorizonMs: number
      readonly subscriber: string
    }
  | { readonly kind: 'background_failed'; readonly saga: string; readonly what: string; readonly error: unknown }
  /** The store answers again; so many rounds of renewals had failed, of which only the first was reported. */
  | { readonly kind: 'background_recovered'; readonly saga: string; readonly what: string; readonly failures: number }

export type SagaListener = (event: SagaEvent) => void
