import { digestParts } from '../../../ledger/core/digest.ts'
import { brokerLimits } from '../../../ledger/core/limits.ts'
import { codeOf } from '../options.ts'
import type { NatsConsumerConfig, NatsJetStream, NatsManager, NatsStream } from './driver.ts'
import { subjectOf } from './message.ts'

const NANOS_PER_MS = 1_000_000
const CONSUMER_NOT_FOUND = 10_014
const STREAM_NOT_FOUND = 10_059
/** The longest namespace and the beginning of a topic; a name should stay well below 255 bytes, being a folder too. */
const READABLE_CHARACTERS = 100
const DIGEST_CHARACTERS = 16

export interface TopologyOptions {
  readonly namespace: string
  readonly declare: boolean
  readonly deliver: 'new' | 'all'
  readonly ackWaitMs: number
  readonly maxAgeMs: number
  readonly replicas: number
}

export interface Durable {
  readonly stream: string
  readonly name: string
  /** How long it waits for an acknowledgement. */
  readonly ackWaitMs: number
}

/** Streams and durable consumers, made when they are missing and otherwise left as their owner set them. */
export interface Topology {
  ensureConsumer(consumer: string, topic: string): Promise<Durable>
  /** Our stream for this topic, which the publisher expects; null when the stream is foreign. */
  expectedStream(topic: string): string | null
  /** Whether any stream takes this topic; null when that cannot be determined. */
  isTaken(topic: string): Promise<boolean | null>
}

export function createTopology(jetstream: NatsJetStream, options: TopologyOptions): Topology {
  const { namespace, declare } = options
  let managing: Promise<NatsManager> | null = null

  function manager(): Promise<NatsManager> {
    managing ??= jetstream.jetstreamManager(false).catch((error: unknown) => {
      managing = null
      throw error
    })
    return managing
  }

  async function ensureStream(topic: string): Promise<string> {
    const { streams } = await manager()
    if (!declare) return await streams.find(subjectOf(namespace, topic))
    const name = streamName(namespace, topic)
    const found = await unlessMissing(streams.info(name), STREAM_NOT_FOUND)
    if (found === null) await streams.add(streamConfig(name, topic, options))
    return name
  }

  return {
    async ensureConsumer(consumer, topic) {
      const stream = await ensureStream(topic)
      const { consumers } = await manager()
      const name = readableName(consumer, [consumer, topic])
      const found = await unlessMissing(consumers.info(stream, name), CONSUMER_NOT_FOUND)
      const info = found ?? (await consumers.add(stream, consumerConfig(name, consumer, topic, options)))
      const { ack_wait: ackWaitNs } = info.config
      return { stream, name, ackWaitMs: ackWaitNs === undefined ? options.ackWaitMs : ackWaitNs / NANOS_PER_MS }
    },

    expectedStream: (topic) => (declare ? streamName(namespace, topic) : null),

    async isTaken(topic) {
      try {
        const { streams } = await manager()
        await streams.find(subjectOf(namespace, topic))
        return true
      } catch (error) {
        return error instanceof Error && error.message === 'no stream matches subject' ? false : null
      }
    },
  }
}

function streamConfig(name: string, topic: string, { namespace, maxAgeMs, replicas }: TopologyOptions): NatsStream {
  return {
    name,
    subjects: [subjectOf(namespace, topic)],
    retention: 'limits',
    storage: 'file',
    // A stream that is full refuses what is new; it never drops what it has confirmed.
    discard: 'new',
    max_age: maxAgeMs * NANOS_PER_MS,
    duplicate_window: Math.min(brokerLimits.duplicateWindowMs, maxAgeMs) * NANOS_PER_MS,
    num_replicas: replicas,
  }
}

function consumerConfig(
  name: string,
  consumer: string,
  topic: string,
  { namespace, deliver, ackWaitMs }: TopologyOptions,
): NatsConsumerConfig {
  return {
    durable_name: name,
    description: `onceonly: ${consumer} on ${topic}`,
    filter_subject: subjectOf(namespace, topic),
    ack_policy: 'explicit',
    deliver_policy: deliver,
    ack_wait: ackWaitMs * NANOS_PER_MS,
    max_deliver: -1,
    max_ack_pending: brokerLimits.ackPending,
  }
}

/**
 * One stream for each topic. One stream for all of them would take, and confirm, what no consumer ever gets; and one whose
 * subjects grow with the subscriptions could not be changed by two processes at once.
 */
function streamName(namespace: string, topic: string): string {
  return readableName(`${namespace}-${topic}`, [topic])
}

/** Stream names hold few characters: a readable part, and a digest that makes the name unique. */
function readableName(text: string, parts: readonly string[]): string {
  const readable = text.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, READABLE_CHARACTERS)
  return `${readable}-${digestParts(parts).slice(0, DIGEST_CHARACTERS)}`
}

async function unlessMissing<T>(found: Promise<T>, missing: number): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (codeOf(error) === missing) return null
    throw error
  }
}
