import { redrivenHeaders } from '../../../ledger/core/redriven.ts'
import type { IncomingMessage } from '../../inbox/port.ts'
import type { OutgoingMessage } from '../../outbox/port.ts'
import { count, fromAscii, joinHeaders, splitHeaders, toAscii } from '../headers.ts'
import type { NatsHeaders, NatsMessage } from './driver.ts'

/** Headers of ours. A message with a topic of ours was written by us, and its texts are in visible ASCII. */
const ours = {
  /** Only where the server is given another one to compare. */
  id: 'Onceonly-Id',
  topic: 'Onceonly-Topic',
  key: 'Onceonly-Key',
  sequence: 'Onceonly-Sequence',
  packed: 'Onceonly-Headers',
} as const

const messageId = 'Nats-Msg-Id'

/**
 * `Nats-Rollup` would purge a stream, `Nats-Expected-…` refuse a message: a user's header must never be such an
 * instruction.
 */
const reserved = /^(nats|onceonly)-/i

/**
 * A topic as part of a subject. Dots stay what they are, so that operators can use wildcards; what a subject cannot hold
 * is percent-encoded, and so is a dot that would leave an empty part.
 */
export function subjectOf(namespace: string, topic: string): string {
  const encoded = toAscii(topic).replaceAll(/[*>]|^\.|\.$|\.(?=\.)/g, (part) => `%${part.charCodeAt(0).toString(16)}`)
  return `${namespace}.${encoded}`
}

/** The id as JetStream compares it, within its window: a redriven message is no copy. */
export function messageIdOf({ id, headers }: OutgoingMessage): string {
  return toAscii(headers[redrivenHeaders.as] ?? id)
}

export function fillHeaders(headers: NatsHeaders, message: OutgoingMessage): NatsHeaders {
  const { plain, packed } = splitHeaders(message.headers, isPlain)
  for (const [name, value] of plain) headers.set(name, value)
  if (message.headers[redrivenHeaders.as] !== undefined) headers.set(ours.id, toAscii(message.id))
  headers.set(ours.topic, toAscii(message.topic))
  if (message.key !== null) headers.set(ours.key, toAscii(message.key))
  if (message.sequence !== null) headers.set(ours.sequence, String(message.sequence))
  if (packed !== null) headers.set(ours.packed, packed)
  return headers
}

export function incomingOf(message: NatsMessage, namespace: string): IncomingMessage {
  const { headers } = message
  const names = headers?.keys() ?? []
  const text = (name: string) => (names.includes(name) ? headers?.get(name) : undefined)
  const topic = text(ours.topic)
  const decode = topic === undefined ? (value: string) => value : fromAscii
  const id = text(ours.id) ?? text(messageId)
  const key = text(ours.key)
  return {
    // A message published without an id is identified by its place in the stream.
    id: id === undefined ? `${message.info.stream}:${message.info.streamSequence}` : decode(id),
    topic: topic === undefined ? message.subject.slice(namespace.length + 1) : decode(topic),
    key: key === undefined ? null : decode(key),
    sequence: count(text(ours.sequence)),
    body: new TextDecoder().decode(message.data),
    headers: joinHeaders(
      names.filter((name) => !reserved.test(name)).map((name) => [name, headers?.get(name) ?? ''] as const),
      text(ours.packed),
    ),
    deliveries: message.info.deliveryCount,
  }
}

/** The driver trims values, and the protocol ends them at a line break. */
function isPlain(name: string, value: string): boolean {
  return /^[!-9;-~]{1,128}$/.test(name) && !reserved.test(name) && /^([!-~]([ -~]*[!-~])?)?$/.test(value)
}
