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

/** A broker in words that a child process understands. The local one lives in the store itself. */
export type BrokerAddress =
  | { readonly kind: 'local' }
  | { readonly kind: 'rabbitmq' | 'nats'; readonly url: string; readonly namespace: string }

export interface OpenBroker extends Publisher, Subscriber {
  stop(): Promise<void>
}

export async function openBroker(address: BrokerAddress, store: SqlStore): Promise<OpenBroker> {
  switch (address.kind) {
    case 'local':
      return createLocalBus({ store, leaseMs: 5_000, retryMs: 100 })
    case 'rabbitmq': {
      const connection = new Connection({ url: address.url, retryLow: 50, retryHigh: 500 })
      connection.on('error', () => {})
      const broker = createRabbitmqBroker({ connection, namespace: address.namespace })
      return { ...broker, stop: () => broker.stop().then(() => connection.close()) }
    }
    case 'nats': {
      const connection = await connect({ servers: address.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 })
      const { namespace } = address
      const broker = createNatsBroker({ jetstream: jetstream(connection), headers, namespace, ackWaitMs: ACK_WAIT_MS })
      return { ...broker, stop: () => broker.stop().then(() => connection.close()) }
    }
  }
}
