import { brokerLimits } from '../../../ledger/core/limits.ts'
import { badOption, checkOptions, wholeOption } from '../../../ledger/core/option-names.ts'
import { createSubscriptions, type Subscriber } from '../../inbox/port.ts'
import type { Publisher } from '../../outbox/port.ts'
import { publishByKey } from '../by-key.ts'
import { startDeadline } from '../deadline.ts'
import { BrokerError } from '../errors.ts'
import { type BrokerOptions, checkedNamespace, checkSubscription, reasonOf } from '../options.ts'
import { consume } from './consume.ts'
import type { NatsHeaders, NatsJetStream } from './driver.ts'
import { createPublishOne } from './publish.ts'
import { createTopology } from './topology.ts'

export type { BrokerOptions } from '../options.ts'
export type {
  NatsHeaders,
  NatsJetStream,
} from './driver.ts'

export interface NatsBrokerOptions extends BrokerOptions {
  /** `jetstream(connection)` of `@nats-io/jetstream`. The connection is yours; close it after the broker. */
  readonly jetstream: NatsJetStream
  /** `headers` of `@nats-io/transport-node` (or of `@nats-io/nats-core`), by which empty headers are made. */
  readonly headers: () => NatsHeaders
  /**
   * Whether streams that are missing are made. If not, they are your own, and take the subjects `NAMESPACE.TOPIC`.
   * @default true
   */
  readonly declare?: boolean
  /** What a consumer gets whose name is new: what is published from now on, or all that the stream still has. @default 'new' */
  readonly deliver?: 'new' | 'all'
  /**
   * How long the server waits for a silent consumer, in milliseconds; a longer effect is renewed by itself.
   * @default 30 seconds
   */
  readonly ackWaitMs?: number
  /** How long a stream keeps a message, delivered or not, and can hand it over again, in milliseconds. @default 7 days */
  readonly maxAgeMs?: number
  /** Copies of every stream in a cluster. @default 1 */
  readonly replicas?: number
}

const natsOptions = {
  jetstream: true,
  headers: true,
  declare: true,
  deliver: true,
  ackWaitMs: true,
  maxAgeMs: true,
  replicas: true,
  namespace: true,
  onError: true,
} satisfies Record<keyof NatsBrokerOptions, true>

export interface NatsBroker extends Publisher, Subscriber {
  readonly name: 'nats'
  /** Stops every subscription; the connection stays. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Every topic has a stream, made by its first subscription, which keeps messages for `maxAgeMs` and drops a copy of an id
 * within its own window; every consumer has a durable pull consumer on the stream of each of its topics. What is
 * published to a topic without a stream is refused.
 *
 * @example
 * ```ts
 * import { jetstream } from '@nats-io/jetstream'
 * import { connect, headers } from '@nats-io/transport-node'
 * import { createLedger } from 'onceonly'
 * import { createNatsBroker } from 'onceonly/nats'
 * import { createRelay } from 'onceonly/outbox'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const connection = await connect({ servers: 'nats://127.0.0.1:4222' })
 * const broker = createNatsBroker({ jetstream: jetstream(connection), headers })
 * createRelay({ ledger: createLedger({ store: sqliteStore('shop.db') }), publisher: broker })
 * ```
 */
export function createNatsBroker(options: NatsBrokerOptions): NatsBroker {
  checkOptions('createNatsBroker', options, natsOptions)
  if (typeof options.jetstream?.publish !== 'function') {
    badOption('NATS broker', 'jetstream', 'must be `jetstream(connection)` of `@nats-io/jetstream`')
  }
  if (typeof options.headers !== 'function') {
    badOption('NATS broker', 'headers', 'must be the function `headers` of `@nats-io/transport-node`')
  }
  const { jetstream, headers: newHeaders, declare = true, deliver = 'new', replicas = 1 } = options
  const { ackWaitMs = brokerLimits.ackWaitMs, maxAgeMs = brokerLimits.redeliveryHorizonMs } = options
  const { onError = () => {} } = options
  const namespace = checkedNamespace(options)
  for (const [name, ms] of Object.entries({ ackWaitMs, maxAgeMs })) wholeOption('NATS broker', name, ms)
  const topology = createTopology(jetstream, { namespace, declare, deliver, ackWaitMs, maxAgeMs, replicas })
  const publishOne = createPublishOne({ jetstream, newHeaders, topology, namespace })
  const { keep, stop } = createSubscriptions()

  return {
    name: 'nats',
    redeliveryHorizonMs: maxAgeMs,

    async publish(messages, { timeoutMs }) {
      const deadline = startDeadline(timeoutMs)
      try {
        return await publishByKey(messages, (message) => publishOne(message, deadline), deadline.late)
      } finally {
        deadline.cancel()
      }
    },

    async subscribe(request, receive) {
      checkSubscription(request)
      const consuming = { jetstream, topology, namespace, onError }
      const subscription = await consume(consuming, request, receive).catch((cause: unknown) => {
        const message = `Consumer ${request.consumer} cannot be set up: ${reasonOf(cause)}.`
        throw new BrokerError('broker_unavailable', message, { cause })
      })
      return keep(subscription)
    },

    stop,
    [Symbol.asyncDispose]: stop,
  }
}
