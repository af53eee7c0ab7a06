import { Buffer, isUtf8 } from 'node:buffer'
import type { Pointer } from '../../ledger/core/record.ts'
import type { Answer, Captured, HeaderList, MissingBody } from './exchange.ts'
import { hasNoBody, headerOf, REPLAYED_HEADER } from './exchange.ts'

/** Which answers are an outcome, and which only say that the command was not taken. */
export type Finality = 'deterministic' | 'snapshot' | 'success-only'

/**
 * `succeeded` and `refused` are recorded and replayed; `released` gives the claim back; `fault` follows the operation's effect
 * table, because a 500 does not say what happened.
 */
export type Meaning = 'succeeded' | 'refused' | 'released' | 'fault'

/** Answers about the caller or the moment, not about the command. */
const neverFinal = new Set([401, 403, 407, 408, 421, 425, 429])

export function meaningOf({ status, headers }: Pick<Captured, 'status' | 'headers'>, finality: Finality): Meaning {
  if (status < 400) return 'succeeded'
  // Whatever else is final: these say that the command was not taken.
  if (neverFinal.has(status)) return 'released'
  if (status === 503 && headerOf(headers, 'retry-after') !== null) return 'released'
  if (finality === 'snapshot') return 'refused'
  if (status >= 500) return 'fault'
  return finality === 'success-only' ? 'released' : 'refused'
}

/** How much of an answer a route keeps. */
export type KeepAnswer = 'response' | 'pointer' | 'outcome'

/** An answer as the record holds it. `missing` stands for a body that was not kept. */
export interface StoredAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body?: Uint8Array
  /** In place of the body, where that is text. */
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
  /^(set-cookie2?|date|age|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|server-timing|(x-)?rate-?limit.*|traceparent|tracestate|b3|x-b3-.*|x-(amzn-)?trace.*|x-request-id|x-correlation-id|idempotent-replayed|onceonly-handed-over)$/

export function canBeKept(name: string): boolean {
  return !neverKept.test(name)
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
  const kept: (readonly [name: string, value: string])[] = []
  for (const header of headers) {
    const [name, value] = header
    // The length is computed again from the bytes, except where they were never sent: in the answer to a HEAD.
    const keeps =
      name === 'content-length'
        ? body instanceof Uint8Array && body.length === 0 && value !== '0'
        : // The bytes of the record are the handler's own, so that their encoding, language and type belong to them.
          usuallyKept.has(name) || name.startsWith('content-') || rules.headers.has(name)
    if (keeps) kept.push(header)
  }
  if (rules.keep === 'response') {
    if (!(body instanceof Uint8Array)) return { status, headers: kept, missing: body, ...named }
    const written = textOf(body, body === sent ? text : undefined)
    return written === null
      ? { status, headers: kept, body, ...named }
      : { status, headers: kept, text: written, ...named }
  }
  if (pointer !== null && status < 400) return { status, headers: kept, pointer }
  // Nothing to rebuild from. What was refused says so with its status; a success without its body would be a lie.
  const isWhole = status >= 400 || (body instanceof Uint8Array && body.length === 0)
  return isWhole
    ? { status, headers: kept.filter(([name]) => !name.startsWith('content-')) }
    : { status, headers: kept, missing: UNKNOWN_BODY }
}

/** What surrounds bytes in a record, and not text: `{"$once":"bytes","is":…}`. */
const AROUND_BYTES_CHARS = 24

/**
 * A body as text, which people can read in the record. Null for other bytes, and where its JSON would be longer than its
 * bytes in base64, because of what JSON escapes: it might not fit where they do.
 */
function textOf(body: Uint8Array, given: string | undefined): string | null {
  if (given === undefined && !isUtf8(body)) return null
  const text = given ?? Buffer.from(body.buffer, body.byteOffset, body.length).toString()
  const mostChars = AROUND_BYTES_CHARS + Math.floor(body.length / 3)
  // Around the text itself stand two quotes.
  let escapesChars = 2
  for (let at = 0; at < text.length && escapesChars <= mostChars; at++) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE || unit === BACKSLASH) escapesChars++
    else if (unit < FIRST_PLAIN) escapesChars += shortlyEscaped.includes(unit) ? 1 : UNICODE_ESCAPE_CHARS - 1
  }
  return escapesChars <= mostChars ? text : null
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Below it are control characters, which JSON escapes: five of them with a letter, and the others by their number. */
const FIRST_PLAIN = 0x20
const shortlyEscaped = [0x08, 0x09, 0x0a, 0x0c, 0x0d]
const UNICODE_ESCAPE_CHARS = 6

/** Made once for all replays of a record that is kept in memory. */
const replayMark = Symbol('onceonly.replay')

/** Byte for byte what was answered first, and marked as a replay. */
export function replayedAnswer(stored: StoredAnswer & { [replayMark]?: Answer }, method: string): Answer {
  if (method === 'HEAD') return markedAnswer(stored, method)
  stored[replayMark] ??= markedAnswer(stored, method)
  const { status, headers, body, text } = stored[replayMark]
  // A list of its own, because the adapter of a caller may add to it.
  return { status, headers: headers.slice(), body, text }
}

function markedAnswer(stored: StoredAnswer, method: string): Answer {
  const { status, headers, text } = stored
  const body = stored.body ?? (text === undefined ? new Uint8Array() : Buffer.from(text))
  const hasLength = hasNoBody(status) || method === 'HEAD' || headerOf(headers, 'content-length') !== null
  const marked: [string, string][] = hasLength ? [] : [['content-length', String(body.length)]]
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
