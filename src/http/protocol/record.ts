import { Buffer, isUtf8 } from 'node:buffer'
import type { Pointer } from '../../ledger/core/record.ts'
import type { Answer, Captured, HeaderList, MissingBody } from './exchange.ts'
import { hasNoBody, headerOf, REPLAYED_HEADER } from './exchange.ts'

/** How much of an answer a route keeps. */
export type KeepAnswer = 'response' | 'pointer' | 'outcome'

/** An answer as the record holds it. `missing` stands for a body that was not kept. */
export interface StoredAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body?: Uint8Array
  /** The same body, where it is text: a record holds it in this form, which people can read. */
  readonly text?: string
  readonly missing?: MissingBody
  readonly pointer?: Pointer
}

export interface KeepRules {
  readonly keep: KeepAnswer
  /** Header names beside the usual ones, in lower case. */
  readonly headers: ReadonlySet<string>
}

/** What describes the result is kept; what belongs to the one exchange, or to the one caller, never is. */
const usuallyKept = new Set([
  'location',
  'etag',
  'link',
  'last-modified',
  'cache-control',
  'vary',
  'retry-after',
  'x-should-retry',
  'stripe-should-retry',
  'x-content-type-options',
])

/** Of the connection, of the moment, of the one caller, or of the one request: a replay of these would be a lie. */
const neverKept =
  /^(set-cookie2?|date|age|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|server-timing|(x-)?rate-?limit.*|traceparent|tracestate|b3|x-b3-.*|x-(amzn-)?trace.*|x-request-id|x-correlation-id|idempotent-replayed)$/

export function canBeKept(name: string): boolean {
  return !neverKept.test(name)
}

/** The bytes of the record are the handler's own, so that their encoding, language and type belong to them. */
function isKept(name: string, rules: KeepRules): boolean {
  return usuallyKept.has(name) || name.startsWith('content-') || rules.headers.has(name)
}

const UNKNOWN_BODY: MissingBody = { bytes: null, sha256: null }

export function storedAnswer(
  { status, headers, body: sent, text }: Captured,
  rules: KeepRules,
  pointer: Pointer | null,
): StoredAnswer {
  // Whatever a handler gave for an answer that has no body never left.
  const body = hasNoBody(status) ? new Uint8Array() : sent
  const named = pointer === null ? {} : { pointer }
  if (rules.keep === 'outcome') return { status, headers: headers.filter(([name]) => name === 'location') }
  const kept = headers.filter(([name, value]) => {
    // Computed anew from the bytes, except where they were never sent: in the answer to a HEAD.
    if (name === 'content-length') return body instanceof Uint8Array && body.length === 0 && value !== '0'
    return isKept(name, rules)
  })
  if (rules.keep === 'response') {
    if (!(body instanceof Uint8Array)) return { status, headers: kept, missing: body, ...named }
    return text === undefined || body !== sent
      ? { status, headers: kept, body, ...named }
      : { status, headers: kept, body, text, ...named }
  }
  if (pointer !== null && status < 400) return { status, headers: kept, pointer }
  // Nothing to rebuild from. What was refused says so with its status; a success without its body would be a lie.
  const told = status >= 400 || (body instanceof Uint8Array && body.length === 0)
  return told
    ? { status, headers: kept.filter(([name]) => !name.startsWith('content-')) }
    : { status, headers: kept, missing: UNKNOWN_BODY }
}

/** Room for what surrounds the body in the text of a record. */
const HEAD_CHARS = 256

/**
 * The answer as the text of a record, where its body is text. Undefined where bytes in base64 are shorter: a text of control
 * characters takes six times its length, and might not fit where its bytes do.
 */
export function encodedAnswer({ status, headers, body, text, pointer }: StoredAnswer): string | undefined {
  const written = body === undefined ? undefined : (text ?? textOf(body))
  if (body === undefined || written === undefined) return undefined
  const encoded = JSON.stringify({ status, headers, text: written, ...(pointer === undefined ? {} : { pointer }) })
  return encoded.length <= HEAD_CHARS + 2 * body.length ? encoded : undefined
}

function textOf(body: Uint8Array): string | undefined {
  return isUtf8(body) ? Buffer.from(body.buffer, body.byteOffset, body.length).toString() : undefined
}

/** Made once for all replays of a record that is kept in memory. */
const replayMark = Symbol('onceonly.replay')

/** Byte for byte what was answered first, and marked as a replay. */
export function replayedAnswer(stored: StoredAnswer & { [replayMark]?: Answer }, method: string): Answer {
  if (method === 'HEAD') return markedAnswer(stored, method)
  stored[replayMark] ??= markedAnswer(stored, method)
  return stored[replayMark]
}

function markedAnswer(stored: StoredAnswer, method: string): Answer {
  const { status, headers, body = new Uint8Array(), text } = stored
  const told = hasNoBody(status) || method === 'HEAD' || headerOf(headers, 'content-length') !== null
  const marked: [string, string][] = told ? [] : [['content-length', String(body.length)]]
  marked.push([REPLAYED_HEADER, 'true'])
  return { status, headers: [...headers, ...marked], body, text }
}

export function markedReplayed(answer: Answer): Answer {
  return { ...answer, headers: [...answer.headers, [REPLAYED_HEADER, 'true']] }
}

/**
 * What a record holds is an answer of ours, unless a person or a probe settled it with a value: that is answered as
 * JSON. Null where there is no value at all.
 */
export function asStoredAnswer(value: unknown): StoredAnswer | null {
  if (value === undefined || value === null) return null
  const given = value as Partial<Omit<StoredAnswer, 'body' | 'text'>> & { readonly body?: unknown; text?: unknown }
  const { status, headers, body, text } = given
  const ours = body === undefined || body instanceof Uint8Array
  if (Number.isInteger(status) && Array.isArray(headers) && ours) {
    if (typeof text !== 'string' || body !== undefined) return value as StoredAnswer
    return { ...(value as StoredAnswer), body: Buffer.from(text) }
  }
  const json = JSON.stringify(value)
  if (json === undefined) return null
  return { status: 200, headers: [['content-type', 'application/json']], body: Buffer.from(json), text: json }
}
