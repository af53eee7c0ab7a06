import { jetstream } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { createNatsBroker } from 'onceonly/nats'
import type { OutgoingMessage, Publisher } from 'onceonly/outbox'
import { createRabbitmqBroker } from 'onceonly/rabbitmq'
import { Connection } from 'rabbitmq-client'
import type { PostgresPlace } from '../harness/postgres.ts'

export interface RelayTask extends PostgresPlace {
  readonly broker: 'rabbitmq' | 'nats'
  readonly brokerUrl: string
  /** A queue or stream of this side's own, so that none grows over the rounds. */
  readonly namespace: string
  readonly rows: number
}

export const TOPIC = 'bench.row'
const KEYS = 1_000

/** What every side publishes: small JSON, a thousand keys. */
export const bodyOf = (n: number) => ({ order: n, cents: 1_999, currency: 'EUR', note: 'x'.repeat(120) })
export const keyOf = (n: number) => `order-${n % KEYS}`

export function messageOf(n: number): OutgoingMessage {
  const sequence = Math.floor(n / KEYS) + 1
  return { id: `row-${n}`, topic: TOPIC, key: keyOf(n), sequence, body: JSON.stringify(bodyOf(n)), headers: {} }
}

export interface OpenPublisher {
  readonly publisher: Publisher
  close(): Promise<void>
}

/** The broker's adapter, with a durable queue or stream behind the topic that has no consumer. */
export async function openPublisher({ broker, brokerUrl, namespace }: RelayTask): Promise<OpenPublisher> {
  const topics = [TOPIC]
  if (broker === 'rabbitmq') {
    const connection = new Connection(brokerUrl)
    connection.on('error', () => {})
    const adapter = createRabbitmqBroker({ connection, namespace })
    await (
      await adapter.subscribe({ consumer: 'bench', topics, concurrency: 1 }, async () => ({ kind: 'done' }))
    ).stop()
    return { publisher: adapter, close: () => adapter.stop().then(() => connection.close()) }
  }
  const connection = await connect({ servers: brokerUrl })
  const adapter = createNatsBroker({ jetstream: jetstream(connection), headers, namespace })
  await (await adapter.subscribe({ consumer: 'bench', topics, concurrency: 1 }, async () => ({ kind: 'done' }))).stop()
  return { publisher: adapter, close: () => adapter.stop().then(() => connection.close()) }
}

/** Rows per second and CPU of this process, from the start of the work to its end. */
export async function timed(rows: number, work: () => Promise<void>): Promise<{ rowsPerS: number; cpuUs: number }> {
  const cpu = process.cpuUsage()
  const startedMs = performance.now()
  await work()
  const seconds = (performance.now() - startedMs) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { rowsPerS: rows / seconds, cpuUs: (user + system) / rows }
}
