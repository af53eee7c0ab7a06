import { setTimeout as sleep } from 'node:timers/promises'
import { DAY } from 'onceonly'
import type { Subscriber } from 'onceonly/inbox'
import { createOutbox, createRelay, type Outbox, type Relay } from 'onceonly/outbox'
import type { Config } from '../config.ts'
import type { ServerParts } from '../parts.ts'
import type { Watch } from '../watch.ts'
import { type Broker, openBroker } from './broker.ts'
import { failureLog } from './log.ts'

/** How news leaves a transaction and reaches those who wait for it, in this process or in another. */
export interface Events {
  /** What a transaction says through it is published when it has committed, or never. */
  readonly outbox: Outbox
  /**
   * Connects, lets every consumer try to subscribe, and then publishes: a message without a queue would be refused. A
   * broker that is away, or a consumer that cannot subscribe, is tried again for as long as it takes; the server and the
   * other consumers work meanwhile.
   */
  begin(consumers: readonly Consumer[]): void
  /** No consumer subscribes any more. Before the consumers are stopped, so that none of them begins behind its own end. */
  hold(): void
  /** What was not published yet is published by another process, or after the next start. */
  stop(): Promise<void>
}

export interface Consumer {
  consume(subscriber: Subscriber): Promise<unknown>
}

export interface EventParts extends Pick<ServerParts, 'base' | 'once' | 'log'> {
  readonly config: Pick<Config, 'brokerUrl'>
  readonly watch: Pick<Watch, 'relay'>
}

/** No consumer keeps an order of its own: longer than any message is on its way, the counter of a key means nothing. */
const KEYS_MS = 30 * DAY
/** A broker that starts beside us is there within seconds. */
const RETRY_MS = 1_000
/** Brokers answer within milliseconds; the relay does not wait for a consumer that takes longer. */
const FIRST_TRIES_MS = 5_000

export function createEvents({ config, base, once, log, watch }: EventParts): Events {
  const outbox = createOutbox({ ledger: once })
  /** Lost connections and the like: all of it is tried again. */
  const brokerFailed = failureLog(log, 'broker.failed')
  const stopping = new AbortController()
  let begun: Promise<void> = Promise.resolve()
  let broker: Broker | null = null
  let relay: Relay | null = null

  async function run(consumers: readonly Consumer[]): Promise<void> {
    const opened = await untilDone(() => openBroker(base, config.brokerUrl, brokerFailed))
    if (opened === null) return
    if (stopping.signal.aborted) return await opened.stop()
    broker = opened
    const subscriber = unlessHeld(opened)
    const firstTries = consumers.map((consumer) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      void untilDone(() => consumer.consume(subscriber).finally(resolve))
      return promise
    })
    await Promise.race([Promise.all(firstTries), pause(FIRST_TRIES_MS)])
    if (!stopping.signal.aborted)
      relay = createRelay({ ledger: once, publisher: opened, forgetKeysMs: KEYS_MS, on: watch.relay })
  }

  /** A subscription that is ready too late is ended at once: its consumer has gone. */
  function unlessHeld(subscriber: Broker): Broker {
    const subscribe: Broker['subscribe'] = async (options, receive) => {
      const subscription = await subscriber.subscribe(options, receive)
      if (!stopping.signal.aborted) return subscription
      await subscription.stop()
      throw new Error('The server is stopping')
    }
    return { ...subscriber, subscribe }
  }

  /** Null when the server stops before it has worked. */
  async function untilDone<T>(work: () => Promise<T>): Promise<T | null> {
    while (!stopping.signal.aborted) {
      try {
        return await work()
      } catch (error) {
        if (stopping.signal.aborted) return null
        brokerFailed(error)
        await pause(RETRY_MS)
      }
    }
    return null
  }

  const pause = (ms: number) => sleep(ms, null, { signal: stopping.signal }).catch(() => {})

  return {
    outbox,
    begin(consumers) {
      begun = run(consumers)
    },
    hold: () => stopping.abort(),
    async stop() {
      stopping.abort()
      await relay?.stop()
      // Also ends a subscription that still waits for its broker.
      await broker?.stop()
      await begun
    },
  }
}
