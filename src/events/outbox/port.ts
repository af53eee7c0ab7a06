/** The header that names the outbox of a numbered message: every outbox counts the messages of a key by itself. */
export const outboxHeader = 'onceonly-outbox'

/** What a relay hands to a broker. The id is the same in every repetition, so that receivers can detect copies. */
export interface OutgoingMessage {
  readonly id: string
  readonly topic: string
  /** Messages of one key are published in the order of their numbers. */
  readonly key: string | null
  /** Consecutive per key from 1, in commit order; null without a key. */
  readonly sequence: number | null
  /** JSON text, exactly as it was committed. */
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** The result of one message. */
export type Published =
  /** The broker has it, durably, and at least one queue or stream took it. */
  | { readonly kind: 'confirmed' }
  /** The broker refused this message: unroutable, too large. A retry may not help, so attempts are counted. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The outcome is unknown, or the broker is down. It is published again, and no attempt is counted. */
  | { readonly kind: 'unavailable'; readonly reason: string }

/** The port that a broker implements for the relay: two methods, at least once. */
export interface Publisher {
  /** For people: `rabbitmq`, `nats`, `local`. */
  readonly name: string
  /**
   * Publishes in the given order and answers for every message, in that order, within the deadline. It never rejects
   * because of a message or a connection. Within one call a key's later message is not confirmed after an earlier one
   * of that key was not.
   */
  publish(messages: readonly OutgoingMessage[], call: { readonly timeoutMs: number }): Promise<readonly Published[]>
}
