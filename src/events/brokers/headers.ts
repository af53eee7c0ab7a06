import { brokerLimits } from '../../ledger/core/limits.ts'
import type { OutgoingMessage } from '../outbox/port.ts'

/**
 * Brokers have headers of their own, some of which are instructions (`CC`, `Nats-Rollup`), and some cannot carry every
 * text. A header that is plain for the broker travels as itself, so that other consumers can read it; the rest travel
 * together as JSON in one header of ours. A user's header is never an instruction to the broker.
 */
export interface SplitHeaders {
  readonly plain: readonly (readonly [name: string, value: string])[]
  /** JSON in visible ASCII, or null when everything was plain. */
  readonly packed: string | null
}

type Headers = Readonly<Record<string, string>>

export function splitHeaders(headers: Headers, isPlain: (name: string, value: string) => boolean): SplitHeaders {
  const entries = Object.entries(headers)
  const plain = entries.filter(([name, value]) => isPlain(name, value))
  if (plain.length === entries.length) return { plain, packed: null }
  const others = entries.filter(([name, value]) => !isPlain(name, value))
  return { plain, packed: toAscii(JSON.stringify(Object.fromEntries(others))) }
}

/** A packed header that is not ours, or was damaged, is no reason to lose a message: it is passed over. */
export function joinHeaders(plain: Iterable<readonly [string, string]>, packed: string | undefined): Headers {
  return Object.fromEntries([...plain, ...unpack(packed)])
}

function unpack(packed: string | undefined): [string, string][] {
  if (packed === undefined) return []
  try {
    const value: unknown = JSON.parse(fromAscii(packed))
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  } catch {
    return []
  }
}

/** Visible ASCII for any text: everything else, and the percent sign, as the percent-encoded bytes of UTF-8. */
export function toAscii(text: string): string {
  return text.replaceAll(/[^!-$&-~]+/g, (part) => {
    return [...Buffer.from(part, 'utf8')].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  })
}

/** The way back; a text that is not in that form stays as it is. */
export function fromAscii(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Why no broker would take this message, or null. A connection must not break because of one message. */
export function tooLarge(message: OutgoingMessage): string | null {
  const { nameBytes, headerBytes, bodyBytes } = brokerLimits
  if (message.id === '' || size(message.id) > nameBytes) return `The id is empty or longer than ${nameBytes} bytes.`
  if (message.topic === '' || size(message.topic) > nameBytes) {
    return `The topic is empty or longer than ${nameBytes} bytes.`
  }
  const headers = Object.entries(message.headers).flat()
  // Encoded, every byte may become three characters.
  const headerSize = size(message.key ?? '') + headers.reduce((sum, text) => sum + size(text) + 4, 0)
  if (headerSize > headerBytes / 3)
    return `The key and the headers have more than ${Math.floor(headerBytes / 3)} bytes.`
  return size(message.body) > bodyBytes ? `The body has more than ${bodyBytes} bytes.` : null
}

/** Numbers that travel as text: only whole numbers are accepted. */
export function count(text: unknown): number | null {
  const value = typeof text === 'string' && text !== '' ? Number(text) : text
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

function size(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}
