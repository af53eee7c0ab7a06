interface OfMessage {
  readonly id: string
  readonly topic: string
  readonly key: string | null
}

/** Events of a relay, for telemetry, logs and tests. No product code decides by them. */
export type RelayEvent =
  /** Confirmed by the broker and marked. `lagMs` is how long the oldest of them waited since it was added. */
  | { readonly kind: 'published'; readonly count: number; readonly lagMs: number }
  /** Refused by the broker; tried again, and until then its key waits. */
  | (OfMessage & {
      readonly kind: 'failed'
      readonly attempts: number
      readonly reason: string
      readonly retryAfterMs: number
    })
  /** Given up, or held behind one of its key that was: an operator decides. */
  | (OfMessage & { readonly kind: 'parked'; readonly attempts: number; readonly reason: string })
  /** The broker is down. No attempt is counted. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterMs: number }
  /** The shares of this relay after they changed, and how many relays there are. */
  | { readonly kind: 'balanced'; readonly partitions: number; readonly relays: number }
  /** Another relay has them now: what this one had under way there is not marked, and comes again. */
  | { readonly kind: 'lease_lost'; readonly partitions: readonly number[] }
  | { readonly kind: 'swept'; readonly removed: number }
  | { readonly kind: 'background_failed'; readonly what: string; readonly error: unknown }
  /** The store answers again; so many rounds of renewals had failed, of which only the first was reported. */
  | { readonly kind: 'background_recovered'; readonly what: string; readonly failures: number }

export type RelayListener = (event: RelayEvent) => void
