/** One delivery of a message, as a broker hands it over. Copies of a message have the same id. */
export interface IncomingMessage {
  readonly id: string
  readonly topic: string
  readonly key: string | null
  /** Consecutive per key from 1 when it came through an outbox; null otherwise. */
  readonly sequence: number | null
  /** The bytes as text: parsed by the inbox, so that a broken body is a message that can be parked. */
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  /** How often the broker has handed it over, from 1; null where it does not count. */
  readonly deliveries: number | null
}

/**
 * The receiver's answer to the broker. A receiver that throws instead gets the message again, after the broker's own
 * delay.
 */
export type Acknowledgement =
  /** It is settled for good: handled, a duplicate, or parked among the dead letters. */
  | { readonly kind: 'done' }
  /** Again, but not before this time has passed. */
  | { readonly kind: 'later'; readonly delayMs: number }

export interface SubscribeOptions {
  /** The consumer group: subscribers of one name share the messages, another name gets them all again. */
  readonly consumer: string
  /** The topics to receive; at least one. */
  readonly topics: readonly string[]
  /** How many messages may be under way at once. */
  readonly concurrency: number
}

export type Receive = (message: IncomingMessage) => Promise<Acknowledgement>

/** The port that a broker implements for inboxes. */
export interface Subscriber {
  /** For people: `rabbitmq`, `nats`, `local`. */
  readonly name: string
  /** For how long the broker may hand over a message again; an inbox must remember at least that long. */
  readonly redeliveryHorizonMs: number
  /** Settles when messages published from now on will reach this consumer; those waiting for it come too. */
  subscribe(options: SubscribeOptions, receive: Receive): Promise<Subscription>
}

export interface Subscription {
  /** Takes no further message, waits for those under way, gives the others back. */
  stop(): Promise<void>
}

/** Subscriptions that end together at the latest. */
export interface Subscriptions {
  /** The same subscription, which ends once, however often it is asked to. */
  keep(subscription: Subscription): Subscription
  stop(): Promise<void>
}

export function createSubscriptions(): Subscriptions {
  const open = new Set<Subscription>()
  return {
    keep(subscription) {
      let stopping: Promise<void> | null = null
      const kept: Subscription = {
        stop: () => (stopping ??= subscription.stop().finally(() => open.delete(kept))),
      }
      open.add(kept)
      return kept
    },
    stop: async () => void (await Promise.all([...open].map((each) => each.stop()))),
  }
}
