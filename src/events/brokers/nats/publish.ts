import { brokerLimits } from '../../../ledger/core/limits.ts'
import type { OutgoingMessage, Published } from '../../outbox/port.ts'
import type { Deadline } from '../deadline.ts'
import { tooLarge } from '../headers.ts'
import { codeOf, reasonOf } from '../options.ts'
import type { NatsHeaders, NatsJetStream } from './driver.ts'
import { fillHeaders, messageIdOf, subjectOf } from './message.ts'
import type { Topology } from './topology.ts'

const confirmed: Published = { kind: 'confirmed' }

/** The server's codes for: larger than the stream takes, and: another stream took it. */
const refusals: readonly unknown[] = [10_054, 10_060]

export interface Publishing {
  readonly jetstream: NatsJetStream
  readonly newHeaders: () => NatsHeaders
  readonly topology: Topology
  readonly namespace: string
}

/** Where the messages of a topic go. */
interface Place {
  readonly subject: string
  /** Ours, which the publisher expects: a foreign stream that takes the subject would not be read by our consumers. */
  readonly expect: { readonly streamName: string } | null
}

export function createPublishOne({ jetstream, newHeaders, topology, namespace }: Publishing) {
  let underWay = 0
  const places = new Map<string, Place>()

  function placeOf(topic: string): Place {
    const known = places.get(topic)
    if (known !== undefined) return known
    if (places.size >= brokerLimits.knownTopics) places.clear()
    const streamName = topology.expectedStream(topic)
    const place = { subject: subjectOf(namespace, topic), expect: streamName === null ? null : { streamName } }
    places.set(topic, place)
    return place
  }

  return async function publishOne(message: OutgoingMessage, deadline: Deadline): Promise<Published> {
    const reason = tooLarge(message)
    if (reason !== null) return { kind: 'refused', reason }
    if (underWay >= brokerLimits.publishWindow) {
      return { kind: 'unavailable', reason: `${brokerLimits.publishWindow} messages wait for confirmation.` }
    }
    underWay += 1
    try {
      const { subject, expect } = placeOf(message.topic)
      const headers = fillHeaders(newHeaders(), message)
      const options = { msgID: messageIdOf(message), headers, timeout: deadline.leftMs() }
      const body = Buffer.from(message.body, 'utf8')
      await withoutTraces(() => jetstream.publish(subject, body, expect === null ? options : { ...options, expect }))
      return confirmed
    } catch (error) {
      return await judge(error, message)
    } finally {
      underWay -= 1
    }
  }

  async function judge(error: unknown, { topic }: OutgoingMessage): Promise<Published> {
    const reason = reasonOf(error)
    const name = error instanceof Error ? error.name : ''
    // The driver's own check, against what the server said that it takes.
    if (name === 'InvalidArgumentError' || refusals.includes(codeOf(error))) return { kind: 'refused', reason }
    // No stream listens on the subject: either the topic has no subscription yet, or the stream has no leader at the
    // moment.
    if (name === 'JetStreamNotEnabled' && (await topology.isTaken(topic)) === false) {
      return { kind: 'refused', reason: `No stream takes the topic ${topic}.` }
    }
    return { kind: 'unavailable', reason }
  }
}

const tracesCanBeOff = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true

/**
 * The driver makes two errors for every request, in case it needs one, and we read only their message: capturing their
 * stacks was a quarter of the time of a publisher. Only what it does before it returns runs without traces.
 */
function withoutTraces<T>(call: () => T): T {
  if (!tracesCanBeOff) return call()
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return call()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
