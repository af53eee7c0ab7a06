import { randomBytes } from 'node:crypto'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { createNatsBroker, type NatsBroker, type NatsBrokerOptions } from 'onceonly/nats'
import type { BrokerClient, BrokerWorld } from './suite.ts'

/** Short, so that the messages of a crashed consumer are redelivered while a test waits. */
const ACK_WAIT_MS = 2_000
/** Longer than a busy machine stalls, so that nothing is delivered twice where no consumer crashed. */
export const PATIENT_ACK_WAIT_MS = 30_000
/** Reconnects soon and forever, because tests wait for it. */
const RECONNECT = { maxReconnectAttempts: -1, reconnectTimeWait: 100 } as const

export const natsUrl = process.env['ONCEONLY_TEST_NATS_URL']

/** A namespace of its own on a server that many share; its streams are removed at the end. */
export async function openNatsWorld(url: string, ackWaitMs = ACK_WAIT_MS): Promise<NatsWorld> {
  const namespace = `test-${randomBytes(6).toString('hex')}`
  return {
    namespace,
    connect: (options) => createClient(url, namespace, { ackWaitMs, ...options }),
    async end() {
      const connection = await connect({ servers: url })
      const { streams } = await jetstreamManager(connection)
      for await (const name of streams.names(`${namespace}.>`)) await streams.delete(name)
      await connection.close()
    },
  }
}

export interface NatsWorld extends BrokerWorld {
  readonly namespace: string
  connect(options?: Partial<NatsBrokerOptions>): Promise<NatsClient>
}

export interface NatsClient extends BrokerClient {
  readonly connection: NatsConnection
  readonly broker: NatsBroker
  readonly errors: unknown[]
}

async function createClient(url: string, namespace: string, options: Partial<NatsBrokerOptions>): Promise<NatsClient> {
  const connection = await connect({ servers: url, ...RECONNECT })
  const errors: unknown[] = []
  const broker = createNatsBroker({
    jetstream: jetstream(connection),
    headers,
    namespace,
    onError: (error) => errors.push(error),
    ...options,
  })
  return {
    connection,
    broker,
    errors,
    publisher: broker,
    subscriber: broker,
    // Without draining: pending acknowledgements are not sent.
    crash: () => connection.close(),
    async stop() {
      await broker.stop()
      await connection.close()
    },
  }
}
