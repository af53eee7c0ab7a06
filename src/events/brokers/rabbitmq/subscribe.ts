import { setTimeout as sleep } from 'node:timers/promises'
import { OnceError } from '../../../ledger/core/errors.ts'
import { brokerLimits } from '../../../ledger/core/limits.ts'
import type { IncomingMessage, Receive, SubscribeOptions } from '../../inbox/port.ts'
import { startDeadline } from '../deadline.ts'
import { reasonOf } from '../options.ts'
import { type RabbitConnection, type RabbitConsumer, type RabbitMessage, verdicts } from './driver.ts'
import { incomingOf } from './message.ts'

/** From RabbitMQ 4 on a message is dropped after twenty deliveries unless the queue says otherwise; the inbox parks it. */
const deliveryLimit = 2_000_000_000

/** With these answers to a declaration trying again is in vain; the last is our own connection's, which was closed. */
const hopeless: readonly unknown[] = [
  'PRECONDITION_FAILED',
  'ACCESS_REFUSED',
  'NOT_ALLOWED',
  'RESOURCE_LOCKED',
  'CLOSING',
]

export interface Consuming {
  readonly connection: RabbitConnection
  readonly exchange: string
  readonly queue: string
  /** Gives a copy of the message to a queue where it waits; false if that did not work. */
  readonly putOff: (message: IncomingMessage, delayMs: number) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** A consumer that can be ended although its broker hangs. */
export interface Consumption {
  /** Waits for every message under way, and then a bounded time for the broker. */
  stop(): Promise<void>
}

/** Settles when the queue is there, bound, and consumed. The driver does all of it again when the connection was lost. */
export async function consume(
  { connection, exchange, queue, putOff, onError }: Consuming,
  { topics, concurrency }: SubscribeOptions,
  receive: Receive,
): Promise<Consumption> {
  const underWay = new Set<Promise<unknown>>()
  const consumer = connection.createConsumer(
    {
      queue,
      queueOptions: {
        queue,
        durable: true,
        arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': deliveryLimit },
      },
      exchanges: [{ exchange, type: 'direct', durable: true }],
      queueBindings: topics.map((topic) => ({ exchange, queue, routingKey: topic })),
      qos: { prefetchCount: concurrency },
      concurrency,
    },
    (delivery) => {
      const handed = handOver(delivery).finally(() => underWay.delete(handed))
      underWay.add(handed)
      return handed
    },
  )

  async function handOver(delivery: RabbitMessage) {
    const message = incomingOf(delivery)
    const delayMs = await delayAsked(message)
    if (delayMs === null || (await putOff(message, delayMs))) return verdicts.acknowledge
    await sleep(Math.min(delayMs, brokerLimits.requeueHoldMs))
    return verdicts.requeue
  }

  async function delayAsked(message: IncomingMessage): Promise<number | null> {
    try {
      const answer = await receive(message)
      return answer.kind === 'done' ? null : answer.delayMs
    } catch (error) {
      onError(error)
      return brokerLimits.thrownDelayMs
    }
  }

  await untilReady(consumer, queue, onError)
  return {
    async stop() {
      const closed = consumer.close().catch(onError)
      // Before the cancellation has been answered some more may come.
      const handled = async () => {
        while (underWay.size > 0) await Promise.all(underWay)
        await sleep(brokerLimits.stopMs, undefined, { ref: false })
      }
      await Promise.race([closed, handled()])
    },
  }
}

async function untilReady(consumer: RabbitConsumer, queue: string, onError: (error: unknown) => void): Promise<void> {
  const ready = Promise.withResolvers<void>()
  const deadline = startDeadline(brokerLimits.subscribeMs)
  let lastError: unknown
  consumer.on('ready', ready.resolve)
  consumer.on('error', (error) => {
    lastError = error
    onError(error)
    if (typeof error === 'object' && error !== null && 'code' in error && hopeless.includes(error.code)) {
      ready.reject(unavailable(queue, error))
    }
  })
  void deadline.late.then(() => ready.reject(unavailable(queue, lastError)))
  try {
    await ready.promise
  } catch (error) {
    await consumer.close()
    throw error
  } finally {
    deadline.cancel()
  }
}

function unavailable(queue: string, cause: unknown): OnceError {
  const reason = cause === undefined ? 'the broker did not answer' : reasonOf(cause)
  return new OnceError('broker_unavailable', `Queue ${queue} cannot be consumed: ${reason}.`, { cause })
}
