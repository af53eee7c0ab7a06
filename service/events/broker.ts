import type { Subscriber } from 'onceonly/inbox'
import { createLocalBus, type LocalBusEvent } from 'onceonly/local'
import type { Publisher } from 'onceonly/outbox'
import type { Base } from '../store.ts'

/** Whatever carries messages from one process to another, or back to itself. */
export interface Broker extends Publisher, Subscriber {
  /** Ends its subscriptions, then its connection. */
  stop(): Promise<void>
}

type Report = (error: unknown) => void

/** By the address: a server of its own, or, without one, the bus inside the store. Only the driver in use is loaded. */
export async function openBroker(base: Base, url: string | null, report: Report): Promise<Broker> {
  if (url === null) {
    const on = (event: LocalBusEvent) => {
      if (event.kind !== 'recovered') report(troubleOf(event))
    }
    return createLocalBus({ store: base.store, on })
  }
  const { address, namespace } = partsOf(url)
  return address.startsWith('amqp') ? openRabbitmq(address, namespace, report) : openNats(address, namespace, report)
}

/** Dropped messages are always reported. */
function troubleOf(event: Exclude<LocalBusEvent, { readonly kind: 'recovered' }>): unknown {
  switch (event.kind) {
    case 'failed':
      return event.error
    case 'expired':
      return new Error(
        `${event.count} messages were dropped: no consumer acknowledged them for as long as they are kept`,
      )
  }
}

/** The namespace stands in the address, because two systems on one server must not take each other's messages. */
function partsOf(url: string): { readonly address: string; readonly namespace: string } {
  const address = new URL(url)
  const namespace = address.searchParams.get('namespace') ?? 'onceonly'
  address.searchParams.delete('namespace')
  return { address: address.href, namespace }
}

async function openRabbitmq(url: string, namespace: string, onError: Report): Promise<Broker> {
  const { Connection } = await import('rabbitmq-client')
  const { createRabbitmqBroker } = await import('onceonly/rabbitmq')
  const connection = new Connection(url)
  connection.on('error', onError)
  const broker = createRabbitmqBroker({ connection, namespace, onError })
  return closing(broker, connection)
}

async function openNats(url: string, namespace: string, onError: Report): Promise<Broker> {
  const { connect, headers } = await import('@nats-io/transport-node')
  const { jetstream } = await import('@nats-io/jetstream')
  const { createNatsBroker } = await import('onceonly/nats')
  // Once connected it comes back by itself, however long the server is away.
  const connection = await connect({ ...natsOptions(url), maxReconnectAttempts: -1 })
  const broker = createNatsBroker({ jetstream: jetstream(connection), headers, namespace, onError })
  return closing(broker, connection)
}

/** The connection was opened for the broker alone. */
function closing(broker: Broker, connection: { close(): Promise<void> }): Broker {
  return {
    ...broker,
    async stop() {
      await broker.stop()
      await connection.close()
    },
  }
}

/** The driver takes the name and the secret apart from the address. */
function natsOptions(url: string) {
  const { host, username, password, protocol } = new URL(url)
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)]
  const secret = pass === '' ? (user === '' ? {} : { token: user }) : { user, pass }
  return { servers: host, ...secret, ...(protocol === 'tls:' ? { tls: {} } : {}) }
}
