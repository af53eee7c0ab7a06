import { setTimeout as sleep } from 'node:timers/promises'
import { brokerLimits } from '../../../ledger/core/limits.ts'
import { createSlots } from '../../../runtime/slots.ts'
import type { IncomingMessage, Receive, SubscribeOptions } from '../../inbox/port.ts'
import { startDeadline } from '../deadline.ts'
import { BrokerError } from '../errors.ts'
import { codeOf, reasonOf, reconnectMs } from '../options.ts'
import type { RabbitChannel, RabbitConnection, RabbitDelivery } from './driver.ts'
import { incomingOf } from './message.ts'

/**
 * From RabbitMQ 4 on a message is dropped after twenty deliveries unless the queue says otherwise; the inbox parks it.
 */
const deliveryLimit = 2_000_000_000

/** The driver's code when the application has closed the connection: no channel will open any more. */
const closing = 'CLOSING'
/** With these answers to the first declaration a retry cannot help. */
const hopeless: readonly unknown[] = [
  'PRECONDITION_FAILED',
  'ACCESS_REFUSED',
  'NOT_ALLOWED',
  'RESOURCE_LOCKED',
  closing,
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

/**
 * Settles when the queue is there, bound, and consumed. The driver's own consumer is not used: after a lost connection
 * it consumes only when every effect under way has ended, so that one slow effect would hold up all others.
 */
export async function consume(
  { connection, exchange, queue, putOff, onError }: Consuming,
  { topics, concurrency }: SubscribeOptions,
  receive: Receive,
): Promise<Consumption> {
  const slots = createSlots(concurrency)
  const stopping = new AbortController()
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
  const ready = Promise.withResolvers<void>()
  // Effects of a lost connection continue, and still count against the limit of the next one.
  const underWay = new Set<Promise<void>>()
  let lastError: unknown

  async function consumeUntilStopped(): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      try {
        await consumeOnce(() => {
          failures = 0
          ready.resolve()
        })
      } catch (error) {
        if (stopping.signal.aborted) return
        lastError = error
        onError(error)
        const code = codeOf(error)
        if (hopeless.includes(code)) ready.reject(unavailable(queue, error))
        if (code === closing) return
      }
      await sleep(reconnectMs(failures++), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  /** On a channel of its own, until the server or the connection ends it. */
  async function consumeOnce(onReady: () => void): Promise<void> {
    const channel = await connection.acquire({ emitErrorsFromChannel: true })
    const delivered = new Set<Promise<void>>()
    channel.on('error', onError)
    const ended = new Promise<void>((resolve) => {
      channel.on('close', resolve)
      channel.on('basic.cancel', (_tag, error) => {
        onError(error)
        resolve()
      })
    })
    try {
      await declare(channel)
      // With every place taken, what the server hands over would wait here, and could not be given to another process.
      while (underWay.size >= concurrency && !stopping.signal.aborted) await Promise.race([...underWay, stopped])
      if (stopping.signal.aborted || !channel.active) return
      const { consumerTag } = await channel.basicConsume({ queue }, (delivery) => {
        const handled = lookAfter(channel, delivery).finally(() => {
          underWay.delete(handled)
          delivered.delete(handled)
        })
        underWay.add(handled)
        delivered.add(handled)
      })
      onReady()
      await Promise.race([ended, stopped])
      if (channel.active && stopping.signal.aborted) await channel.basicCancel({ consumerTag })
    } finally {
      // A message is acknowledged on the channel that brought it. Before a cancellation is answered, more may come.
      const retired = retire(channel, delivered)
      if (stopping.signal.aborted) await retired
    }
  }

  async function retire(channel: RabbitChannel, delivered: ReadonlySet<Promise<void>>): Promise<void> {
    while (channel.active && delivered.size > 0) await Promise.all(delivered)
    await channel.close()
  }

  async function declare(channel: RabbitChannel): Promise<void> {
    const settings = { 'x-queue-type': 'quorum', 'x-delivery-limit': deliveryLimit }
    await channel.queueDeclare({ queue, durable: true, arguments: settings })
    await channel.exchangeDeclare({ exchange, type: 'direct', durable: true })
    for (const topic of topics) await channel.queueBind({ exchange, queue, routingKey: topic })
    await channel.basicQos({ prefetchCount: concurrency })
  }

  async function lookAfter(channel: RabbitChannel, delivery: RabbitDelivery): Promise<void> {
    const { deliveryTag } = delivery
    await slots.take()
    try {
      // On a lost channel it cannot be answered; it comes again on another one.
      if (!channel.active) return
      if (!stopping.signal.aborted && (await handOver(channel, delivery))) channel.basicAck({ deliveryTag })
      else channel.basicNack({ deliveryTag, requeue: true })
    } catch (error) {
      onError(error)
    } finally {
      slots.give()
    }
  }

  /** Whether the message is done with, here: it was handled, or a copy of it waits. */
  async function handOver(channel: RabbitChannel, delivery: RabbitDelivery): Promise<boolean> {
    const message = incomingOf(delivery)
    const delayMs = await delayAsked(message)
    if (delayMs === null || (channel.active && (await putOff(message, delayMs)))) return true
    if (channel.active) await sleep(Math.min(delayMs, brokerLimits.requeueHoldMs))
    return false
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

  const deadline = startDeadline(brokerLimits.subscribeMs)
  void deadline.late.then(() => ready.reject(unavailable(queue, lastError)))
  const consuming = consumeUntilStopped()
  try {
    await ready.promise
  } catch (error) {
    stopping.abort()
    throw error
  } finally {
    deadline.cancel()
  }
  return {
    async stop() {
      stopping.abort()
      // Also of channels that were lost. Before the cancellation has been answered some more may come; they are given
      // back.
      while (underWay.size > 0) await Promise.all(underWay)
      await Promise.race([consuming, sleep(brokerLimits.stopMs, undefined, { ref: false })])
    },
  }
}

function unavailable(queue: string, cause: unknown): BrokerError {
  const reason = cause === undefined ? 'the broker did not answer' : reasonOf(cause)
  return new BrokerError('broker_unavailable', `Queue ${queue} cannot be consumed: ${reason}.`, { cause })
}
