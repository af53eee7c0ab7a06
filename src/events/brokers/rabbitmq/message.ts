import type { IncomingMessage } from '../../inbox/port.ts'
import type { OutgoingMessage } from '../../outbox/port.ts'
import { count, joinHeaders, splitHeaders } from '../headers.ts'
import type { RabbitEnvelope, RabbitMessage } from './driver.ts'

/** Headers of ours. Key, number and topic must survive a detour, on which the routing key is another one. */
const ours = {
  topic: 'onceonly-topic',
  key: 'onceonly-key',
  sequence: 'onceonly-sequence',
  packed: 'onceonly-headers',
  /** How often the message was delivered before its last delay: the queue's own count restarts there. */
  deliveries: 'onceonly-deliveries',
} as const

/** Set by the queue when a message comes again: how often that was. */
const deliveryCount = 'x-delivery-count'

/** What the server writes, and `CC` and `BCC`, by which a sender would choose further queues. */
const serverOwned = /^(onceonly-.*|x-death|x-(first|last)-death-.*|x-delivery-count|x-acquired-count|cc|bcc)$/i

/** The encoding keeps the driver from parsing the body: it is the receiver who may fail on it. */
const json = { contentType: 'application/json', contentEncoding: 'utf-8' } as const

export function envelopeOf(message: OutgoingMessage, exchange: string): RabbitEnvelope {
  const { plain, packed } = splitHeaders(message.headers, isPlain)
  return {
    exchange,
    routingKey: message.topic,
    mandatory: true,
    durable: true,
    messageId: message.id,
    ...json,
    headers: Object.fromEntries([
      ...plain,
      [ours.topic, message.topic],
      ...(message.key === null ? [] : [[ours.key, message.key]]),
      ...(message.sequence === null ? [] : [[ours.sequence, String(message.sequence)]]),
      ...(packed === null ? [] : [[ours.packed, packed]]),
    ]),
  }
}

/** The same message for a queue where it waits, with the count of its deliveries so far. */
export function detourOf(message: IncomingMessage, waitingQueue: string, delayMs: number): RabbitEnvelope {
  const envelope = envelopeOf(message, '')
  return {
    ...envelope,
    routingKey: waitingQueue,
    expiration: String(delayMs),
    headers: { ...envelope.headers, [ours.deliveries]: String(message.deliveries ?? 0) },
  }
}

export function incomingOf(message: RabbitMessage): IncomingMessage {
  const headers = message.headers ?? {}
  const text = (name: string) => (headers[name] === undefined ? undefined : asText(headers[name]))
  const plain = Object.keys(headers)
    .filter((name) => !serverOwned.test(name))
    .map((name) => [name, asText(headers[name])] as const)
  const before = count(headers[ours.deliveries]) ?? 0
  return {
    // Duplicates of a message without an id cannot be detected: the inbox decides what happens to it.
    id: message.messageId ?? '',
    topic: text(ours.topic) ?? message.routingKey,
    key: text(ours.key) ?? null,
    sequence: count(headers[ours.sequence]),
    body: asText(message.body),
    headers: joinHeaders(plain, text(ours.packed)),
    deliveries: before + (count(headers[deliveryCount]) ?? 0) + 1,
  }
}

function isPlain(name: string, value: string): boolean {
  return /^[!-~]{1,128}$/.test(name) && !serverOwned.test(name) && value.isWellFormed()
}

/** Others may send what they like: numbers in headers, and bodies that the driver has parsed. */
function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (Buffer.isBuffer(value)) return value.toString('utf8')
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    // Nested too deeply. Throwing here would redeliver it forever; without a body the inbox parks it.
    return ''
  }
}
