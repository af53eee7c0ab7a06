import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRabbitmqBroker, type RabbitmqBroker } from 'onceonly/rabbitmq'
import { Connection } from 'rabbitmq-client'
import type { BrokerClient, BrokerWorld } from './suite.ts'

/** Reconnects soon, because tests wait for it. */
const RETRY_MS = { retryLow: 50, retryHigh: 500 } as const
const CLEAN_UP_MS = 5_000

export const rabbitmqUrl = process.env['ONCEONLY_TEST_RABBITMQ_URL']

/** A namespace of its own, unless one is given, on a server that many share; what was made in it is removed at the end. */
export async function openRabbitmqWorld(
  url: string,
  namespace = `test-${randomBytes(6).toString('hex')}`,
): Promise<RabbitmqWorld> {
  const queues = new Set<string>()
  return {
    namespace,
    connect: async () => createClient(url, namespace, queues),
    async end() {
      const connection = connectTo(url)
      for (const queue of queues) {
        await connection.queueDelete({ queue })
        for (const stepMs of await waitingSteps(connection, queue)) {
          await connection.queueDelete({ queue: `${queue}.later.${stepMs}` })
        }
      }
      await connection.exchangeDelete({ exchange: namespace })
      await Promise.race([connection.close(), sleep(CLEAN_UP_MS, undefined, { ref: false })])
    },
  }
}

export interface RabbitmqWorld extends BrokerWorld {
  readonly namespace: string
  connect(): Promise<RabbitmqClient>
}

export interface RabbitmqClient extends BrokerClient {
  readonly connection: Connection
  readonly broker: RabbitmqBroker
  readonly errors: unknown[]
}

function connectTo(url: string): Connection {
  const connection = new Connection({ url, ...RETRY_MS })
  connection.on('error', () => {})
  return connection
}

function createClient(url: string, namespace: string, queues: Set<string>): RabbitmqClient {
  const connection = connectTo(url)
  const errors: unknown[] = []
  const broker = createRabbitmqBroker({ connection, namespace, onError: (error) => errors.push(error) })
  let crashed = false
  return {
    connection,
    broker,
    errors,
    publisher: broker,
    subscriber: {
      ...broker,
      subscribe(options, receive) {
        queues.add(`${namespace}.${options.consumer}`)
        return broker.subscribe(options, receive)
      },
    },
    async crash() {
      crashed = true
      connection.unsafeDestroy()
    },
    async stop() {
      await broker.stop()
      if (!crashed) await connection.close()
    },
  }
}

/** Of the queues where messages wait for later, those that were made: a passive declaration of any other one fails. */
async function waitingSteps(connection: Connection, queue: string): Promise<number[]> {
  const found: number[] = []
  for (const stepMs of [250, 1_000, 4_000, 16_000, 60_000]) {
    const exists = await connection.queueDeclare({ queue: `${queue}.later.${stepMs}`, passive: true }).then(
      () => true,
      () => false,
    )
    if (exists) found.push(stepMs)
  }
  return found
}
