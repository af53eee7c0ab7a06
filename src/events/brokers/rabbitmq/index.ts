import { OnceError } from '../../../ledger/core/errors.ts'
import { brokerLimits } from '../../../ledger/core/limits.ts'
import { badOption, checkOptions } from '../../../ledger/core/option-names.ts'
import { createSubscriptions, type Subscriber } from '../../inbox/port.ts'
import type { OutgoingMessage, Published, Publisher } from '../../outbox/port.ts'
import { publishByKey } from '../by-key.ts'
import { startDeadline } from '../deadline.ts'
import { BrokerError } from '../errors.ts'
import { tooLarge } from '../headers.ts'
import { type BrokerOptions, checkedNamespace, checkSubscription } from '../options.ts'
import { createConfirms } from './confirms.ts'
import type { RabbitChannel, RabbitConnection } from './driver.ts'
import { createDeclared, putOff } from './later.ts'
import { envelopeOf } from './message.ts'
import { consume } from './subscribe.ts'

export type { BrokerOptions } from '../options.ts'
export type { RabbitConnection } from './driver.ts'

export interface RabbitmqBrokerOptions extends BrokerOptions {
  /** Your own `Connection` of `rabbitmq-client`. It reconnects by itself; closing it, after the broker, is yours. */
  readonly connection: RabbitConnection
  /**
   * How long a consumer may be away, in milliseconds, and still find its unacknowledged messages handed over again:
   * RabbitMQ itself keeps them without an end. An inbox should remember at least as long. @default 7 days
   */
  readonly redeliveryHorizonMs?: number
}

const rabbitmqOptions = {
  connection: true,
  redeliveryHorizonMs: true,
  namespace: true,
  onError: true,
} satisfies Record<keyof RabbitmqBrokerOptions, true>

export interface RabbitmqBroker extends Publisher, Subscriber {
  readonly name: 'rabbitmq'
  /** Stops every subscription and closes the channels, not the connection. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Messages go to one durable direct exchange, the namespace, by their topic; every consumer has a durable quorum queue,
 * `NAMESPACE.CONSUMER`, bound to its topics. A binding outlives the subscription that made it.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createRelay } from 'onceonly/outbox'
 * import { createRabbitmqBroker } from 'onceonly/rabbitmq'
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { Connection } from 'rabbitmq-client'
 *
 * const connection = new Connection('amqp://127.0.0.1')
 * const broker = createRabbitmqBroker({ connection })
 * createRelay({ ledger: createLedger({ store: sqliteStore('shop.db') }), publisher: broker })
 * ```
 */
export function createRabbitmqBroker(options: RabbitmqBrokerOptions): RabbitmqBroker {
  checkOptions('createRabbitmqBroker', options, rabbitmqOptions)
  if (typeof options.connection?.acquire !== 'function') {
    badOption('RabbitMQ broker', 'connection', 'must be a `Connection` of `rabbitmq-client`: new Connection(url)')
  }
  const { connection, redeliveryHorizonMs = brokerLimits.redeliveryHorizonMs, onError = () => {} } = options
  const exchange = checkedNamespace(options)
  const confirms = createConfirms(connection, declareExchange)
  const declared = createDeclared(withChannel)
  const subscriptions = createSubscriptions()
  survive(connection)

  function declareExchange(channel: RabbitChannel): Promise<void> {
    return channel.exchangeDeclare({ exchange, type: 'direct', durable: true })
  }

  function publishOne(message: OutgoingMessage): Promise<Published> {
    const reason = tooLarge(message)
    if (reason !== null) return Promise.resolve({ kind: 'refused', reason })
    return confirms.send(envelopeOf(message, exchange), message.body)
  }

  async function withChannel(work: (channel: RabbitChannel) => Promise<void>): Promise<void> {
    const channel = await connection.acquire()
    try {
      await work(channel)
    } finally {
      await channel.close()
    }
  }

  async function stop(): Promise<void> {
    await subscriptions.stop()
    await confirms.stop()
  }

  return {
    name: 'rabbitmq',
    redeliveryHorizonMs,

    async publish(messages, { timeoutMs }) {
      const { late, cancel } = startDeadline(timeoutMs)
      try {
        const closed = await confirms.open(late)
        if (closed !== null) return messages.map(() => ({ kind: 'unavailable', reason: closed }))
        return await publishByKey(messages, publishOne, late)
      } finally {
        cancel()
      }
    },

    async subscribe(request, receive) {
      checkSubscription(request)
      const queue = queueName(exchange, request.consumer)
      const consumption = await consume(
        {
          connection,
          exchange,
          queue,
          onError,
          async putOff(message, delayMs) {
            const { late, cancel } = startDeadline(brokerLimits.putOffMs)
            const put = await putOff(confirms, declared, { queue, message, delayMs }, late)
            cancel()
            if (put.kind !== 'confirmed')
              onError(new BrokerError('broker_unavailable', `The message could not be delayed: ${put.reason}`))
            return put.kind === 'confirmed'
          },
        },
        request,
        receive,
      )
      return subscriptions.keep(consumption)
    },

    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** The longest name that is made of it, `.later.` and the digits of a step, must still be a short string. */
function queueName(namespace: string, consumer: string): string {
  const queue = `${namespace}.${consumer}`
  const spare = '.later.'.length + String(brokerLimits.laterMaxMs).length
  if (Buffer.byteLength(queue) + spare <= brokerLimits.nameBytes) return queue
  throw new OnceError('bad_option', `\`consumer\` is too long: with the namespace it has ${queue.length} characters.`)
}

const survivors = new WeakSet<RabbitConnection>()

/** A lost connection reconnects by itself; without a listener its error would end the process. */
function survive(connection: RabbitConnection): void {
  if (survivors.has(connection)) return
  survivors.add(connection)
  connection.on('error', () => undefined)
}
