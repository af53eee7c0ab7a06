import { CanonicalError, canonicalJson, canonicalValue } from '../../ledger/core/canonical.ts'
import { sha256Base64Url, sha256Hex } from '../../ledger/core/digest.ts'
import { keyOf } from './key.ts'
import type { InboxOptions } from './options.ts'
import type { IncomingMessage } from './port.ts'

/** A delivery as the inbox sees it: who it is, and what it says. */
export interface Delivery {
  readonly message: IncomingMessage
  /** Its key in the ledger, and in the inbox's tables. */
  readonly key: string
  /** Distinguishes a copy from another message under the same id. */
  readonly fingerprint: string
  readonly content: Content
}

export type Content =
  /** Every run of the effect gets a body of its own: it may change it, and be run again. */
  | { readonly kind: 'read'; body(): unknown }
  | { readonly kind: 'broken'; readonly reason: 'unreadable' | 'no_id'; readonly error: unknown }

type Reading = Pick<InboxOptions<never>, 'parse' | 'fingerprint'>

/** Never throws: a message that cannot be read is one that can be parked. */
export function readDelivery(message: IncomingMessage, reading: Reading): Delivery {
  const { id, topic } = message
  if (typeof id !== 'string' || id.trim() === '') {
    // Without an id, topic, key and body are the identity; otherwise all such messages would be copies of each other.
    const named = `no-id:${sha256Hex(JSON.stringify([topic, message.key, message.body]))}`
    const error = new Error('The message has no id.')
    const content = { kind: 'broken', reason: 'no_id', error } as const
    return { message: { ...message, id: named }, key: named, fingerprint: rawText(message), content }
  }
  try {
    const parse = () => (reading.parse === undefined ? JSON.parse(message.body) : reading.parse(message.body, message))
    const parsed: unknown = parse()
    const fingerprint = fingerprintOf(message, parsed, reading)
    return { message, key: keyOf(id), fingerprint, content: { kind: 'read', body: onceThen(parsed, parse) } }
  } catch (error) {
    const content = { kind: 'broken', reason: 'unreadable', error } as const
    return { message, key: keyOf(id), fingerprint: rawText(message), content }
  }
}

function fingerprintOf(message: IncomingMessage, body: unknown, { parse, fingerprint }: Reading): string {
  if (fingerprint !== undefined) return `chosen:${sha256Base64Url(canonicalValue(fingerprint(body, message) ?? null))}`
  if (parse !== undefined) return rawText(message)
  try {
    return `json:${sha256Base64Url(canonicalJson(message.body))}`
  } catch (error) {
    // Two members of one name, for instance: JavaScript reads it, but it has no canonical form.
    if (error instanceof CanonicalError) return rawText(message)
    throw error
  }
}

/** As JSON, because halves of surrogate pairs all look the same in UTF-8. */
function rawText({ body }: IncomingMessage): string {
  return `text:${sha256Hex(JSON.stringify(body))}`
}

/** What is here already, and fresh ones afterwards. */
function onceThen(first: unknown, fresh: () => unknown): () => unknown {
  let taken = false
  return () => {
    const body = taken ? fresh() : first
    taken = true
    return body
  }
}
