import { digestParts } from '../../ledger/core/digest.ts'
import { exceedsBytes } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { OutboxMessage } from '../../ledger/store/outbox.ts'
import { OutboxError } from './errors.ts'

/** A message as its row keeps it. */
export interface Draft {
  readonly topic: string
  readonly key: string | null
  readonly headers: string
  readonly body: string
  /** What publishing it may take, for batches that are bounded in bytes. */
  readonly bytes: number
}

/** Rows of one line are published in order: a line is a key, or a single message without one. */
export interface Line {
  readonly line: string
  readonly partition: number
}

const LINE_DIGITS = 32

/** A digest, so that counters are small and a key of any characters fits. */
export function lineOf(key: string | null, id: string): Line {
  const digest = key === null ? digestParts(['id', id]) : digestParts(['key', key])
  return {
    line: digest.slice(0, LINE_DIGITS),
    partition: Number.parseInt(digest.slice(-4), 16) % limits.outboxPartitions,
  }
}

const NAME = /^[\w:/-]+(?:\.[\w:/-]+)*$/
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
/** Names that brokers and their adapters give a meaning to. */
const RESERVED = /^(?:onceonly-|nats-|x-death$|x-(?:first|last)-death-|x-(?:delivery|acquired)-count$|b?cc$)/i
const CONTROL = /\p{Cc}/u

export function draftOf(message: OutboxMessage): Draft {
  const { topic, key = null, headers = {} } = message
  if (typeof topic !== 'string' || !NAME.test(topic)) {
    refuse('topic', 'must be words of letters, digits and `_ - : /`, with dots between them')
  }
  if (exceedsBytes(topic, limits.outboxTopicBytes)) refuse('topic', `is longer than ${limits.outboxTopicBytes} bytes`)
  if (key !== null) checkText('key', key, limits.identityPartBytes)
  const body = bodyOf(message.body)
  const headerText = headersOf(headers)
  return { topic, key, headers: headerText, body, bytes: Buffer.byteLength(body) + headerText.length }
}

export function checkId(id: string): string {
  checkText('id', id, limits.outboxIdBytes)
  return id
}

function checkText(name: string, text: unknown, bytes: number): void {
  if (typeof text !== 'string' || text.trim() === '') return refuse(name, 'must be a text that is not blank')
  if (CONTROL.test(text)) refuse(name, 'contains a control character')
  if (!text.isWellFormed()) refuse(name, 'contains half a surrogate pair')
  if (exceedsBytes(text, bytes)) refuse(name, `is longer than ${bytes} bytes`)
}

function bodyOf(body: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch (cause) {
    refuse('body', 'cannot be written as JSON', cause)
  }
  if (text === undefined) return refuse('body', 'cannot be written as JSON')
  if (exceedsBytes(text, limits.outboxBodyBytes)) refuse('body', `is longer than ${limits.outboxBodyBytes} bytes`)
  return text
}

function headersOf(headers: unknown): string {
  if (typeof headers !== 'object' || headers === null) return refuse('headers', 'must be an object of texts')
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name)) refuse('headers', `has a name that cannot be sent: ${JSON.stringify(name)}`)
    if (RESERVED.test(name)) refuse('headers', `may not set \`${name}\`, which brokers use`)
    if (typeof value !== 'string') return refuse('headers', `has a \`${name}\` that is no text`)
    if (CONTROL.test(value) || !value.isWellFormed()) refuse('headers', `has a \`${name}\` that cannot be sent`)
  }
  const text = JSON.stringify(headers)
  if (exceedsBytes(text, limits.outboxHeaderBytes))
    refuse('headers', `are longer than ${limits.outboxHeaderBytes} bytes`)
  return text
}

function refuse(part: string, what: string, cause?: unknown): never {
  throw new OutboxError('bad_message', `The message's \`${part}\` ${what}.`, { details: { part }, cause })
}
