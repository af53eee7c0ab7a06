import { setTimeout as sleep } from 'node:timers/promises'
import type { Subscriber } from 'onceonly/inbox'
import { createOutbox, createRelay, type Outbox, type Relay } from 'onceonly/outbox'
import type { Config } from '../config.ts'
import type { Log } from '../logs.ts'
import type { Base } from '../store.ts'
import type { Watch } from '../watch.ts'
import { type Broker, openBroker } from './broker.ts'
import { failureLog } from './log.ts'

/** How news leaves a transaction and reaches those who wait for it, in this process or in another. */
export interface Events {
  /** What a transaction says through it is published when it has committed, or never. */
  readonly outbox: Outbox
  /**
   * Connects, lets everybody subscribe, and only then publishes: what nobody waits for would be refused. A broker that is
   * away is tried again for as long as it takes; the server serves meanwhile, and its news waits in the store.
   */
  begin(consumers: readonly Consumer[]): void
  /** Nobody subscribes any more. Before the consumers are stopped, so that none of them begins behind its own end. */
  hold(): void
  /** What was not published yet is published by another process, or after the next start. */
  stop(): Promise<void>
}

export interface Consumer {
  consume(subscriber: Subscriber): Promise<unknown>
}

/** A broker that starts beside us is there within seconds. */
const RETRY_MS = 1_000

export function createEvents(config: Config, base: Base, log: Log, watch: Watch): Events {
  const outbox = createOutbox({ store: base.store })
  /** Lost connections and the like: all of it is tried again. */
  const brokerFailed = failureLog(log, 'broker.failed')
  const stopping = new AbortController()
  let begun: Promise<void> = Promise.resolve()
  let broker: Broker | null = null
  let relay: Relay | null = null

  async function connect(waiting: Consumer[]): Promise<void> {
    broker ??= await openBroker(base, config.brokerUrl, brokerFailed)
    if (stopping.signal.aborted) return await broker.stop()
    // One by one, so that a try after a failure goes on with those who still wait.
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      await next.consume(unlessHeld(broker))
      waiting.shift()
    }
    if (!stopping.signal.aborted) relay = createRelay({ store: base.store, publisher: broker, on: watch.relay })
  }

  /** A subscription that is ready too late is ended at once: whoever asked for it has gone. */
  function unlessHeld(subscriber: Broker): Broker {
    const subscribe: Broker['subscribe'] = async (options, receive) => {
      const subscription = await subscriber.subscribe(options, receive)
      if (!stopping.signal.aborted) return subscription
      await subscription.stop()
      throw new Error('The server is stopping')
    }
    return { ...subscriber, subscribe }
  }

  async function untilConnected(waiting: Consumer[]): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        return await connect(waiting)
      } catch (error) {
        if (stopping.signal.aborted) return
        brokerFailed(error)
        await sleep(RETRY_MS, null, { signal: stopping.signal }).catch(() => {})
      }
    }
  }

  return {
    outbox,
    begin(consumers) {
      begun = untilConnected([...consumers])
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
