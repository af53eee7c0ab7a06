import { brokerLimits } from '../../../ledger/core/limits.ts'
import type { OutgoingMessage, Published } from '../../outbox/port.ts'
import type { Deadline } from '../deadline.ts'
import { tooLarge } from '../headers.ts'
import { codeOf, reasonOf } from '../options.ts'
import type { NatsHeaders, NatsJetStream } from './driver.ts'
import { fillHeaders, messageIdOf, subjectOf } from './message.ts'
import type { Topology } from './topology.ts'

/** The server's codes for: larger than the stream takes, and: another stream took it. */
const refusals: readonly unknown[] = [10_054, 10_060]

export interface Publishing {
  readonly jetstream: NatsJetStream
  readonly newHeaders: () => NatsHeaders
  readonly topology: Topology
  readonly namespace: string
}

export function createPublishOne({ jetstream, newHeaders, topology, namespace }: Publishing) {
  let underWay = 0

  return async function publishOne(message: OutgoingMessage, deadline: Deadline): Promise<Published> {
    const reason = tooLarge(message)
    if (reason !== null) return { kind: 'refused', reason }
    if (underWay >= brokerLimits.publishWindow) {
      return { kind: 'unavailable', reason: `${brokerLimits.publishWindow} messages wait for confirmation.` }
    }
    underWay += 1
    try {
      const sent = send(message, deadline)
      return await Promise.race([sent, deadline.late.then(() => tooLate)])
    } finally {
      underWay -= 1
    }
  }

  async function send(message: OutgoingMessage, deadline: Deadline): Promise<Published> {
    const stream = topology.expectedStream(message.topic)
    try {
      await jetstream.publish(subjectOf(namespace, message.topic), Buffer.from(message.body, 'utf8'), {
        msgID: messageIdOf(message),
        headers: fillHeaders(newHeaders(), message),
        timeout: deadline.leftMs(),
        // A foreign stream that takes the subject would not be read by our consumers.
        ...(stream === null ? {} : { expect: { streamName: stream } }),
      })
      return { kind: 'confirmed' }
    } catch (error) {
      return await judge(error, message)
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

const tooLate: Published = { kind: 'unavailable', reason: 'The broker did not confirm in time.' }
