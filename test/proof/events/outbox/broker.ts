import { jetstream } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import type { SqlStore } from 'onceonly'
import type { Subscriber } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import { createNatsBroker } from 'onceonly/nats'
import type { Publisher } from 'onceonly/outbox'
import { createRabbitmqBroker } from 'onceonly/rabbitmq'
import { Connection } from 'rabbitmq-client'

/** Short, so that the messages of a killed consumer are redelivered while a test waits. */
const ACK_WAIT_MS = 3_000
/** A node that stands still says nothing, and its connections stay open: after two of these they are given up. */
const HEARTBEAT_S = 5

/** A broker in words that a child process understands. The local one lives in the store itself. */
export type BrokerAddress =
  | { readonly kind: 'local' }
  | {
      readonly kind: 'rabbitmq' | 'nats'
      readonly url: string
      readonly namespace: string
      /** All nodes of a cluster, and on how many of them a stream of NATS is kept. */
      readonly urls?: readonly string[]
      readonly replicas?: number
    }

export interface OpenBroker extends Publisher, Subscriber {
  stop(): Promise<void>
}

export async function openBroker(address: BrokerAddress, store: SqlStore): Promise<OpenBroker> {
  switch (address.kind) {
    case 'local':
      return createLocalBus({ store, leaseMs: 5_000, retryMs: 100 })
    case 'rabbitmq': {
      const connection = new Connection({
        url: address.url,
        ...(address.urls === undefined ? {} : { hosts: address.urls.map((url) => new URL(url).host) }),
        heartbeat: HEARTBEAT_S,
        retryLow: 50,
        retryHigh: 500,
      })
      connection.on('error', () => {})
      const broker = createRabbitmqBroker({ connection, namespace: address.namespace })
      return { ...broker, stop: () => broker.stop().then(() => connection.close()) }
    }
    case 'nats': {
      const connection = await connect({
        servers: [...(address.urls ?? [address.url])],
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        pingInterval: 1_000 * HEARTBEAT_S,
      })
      const { namespace, replicas = 1 } = address
      const broker = createNatsBroker({
        jetstream: jetstream(connection),
        headers,
        namespace,
        replicas,
        ackWaitMs: ACK_WAIT_MS,
      })
      return { ...broker, stop: () => broker.stop().then(() => connection.close()) }
    }
  }
}
