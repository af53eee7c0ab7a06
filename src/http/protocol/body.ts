import { canonicalJson, canonicalValue } from '../../ledger/core/canonical.ts'
import { fingerprintJsonBytes, fingerprintOf, lengthPrefixed, sha256Hex } from '../../ledger/core/digest.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import { asBodyRefusal, bodyRefusal } from './body-refusal.ts'
import type { Parameterised } from './content-type.ts'
import { charsetOf, mediaTypeText, parseMediaType, withoutSpace } from './content-type.ts'
import { formText } from './form.ts'
import { multipartText } from './multipart.ts'

export interface BodyInput {
  /** The header as it came. */
  readonly contentType: string | null
  /** A body that is still compressed is known by its bytes only. */
  readonly contentEncoding?: string | null | undefined
  readonly body: Uint8Array
  readonly shape: number
  /**
   * Picks the fields of a JSON body that count; any other body counts whole. Whole numbers that a double would round
   * arrive as `bigint`; other numbers that would lose digits are refused as soon as they are used.
   */
  readonly choose?: ((json: unknown) => unknown) | undefined
  /** Hand out the parsed JSON, although no fields are chosen: for a key that is one of them. */
  readonly parse?: boolean | undefined
}

export interface BodyMeaning {
  /** What the body means, as a short text: it is hashed together with the rest of its request, and so only once. */
  readonly meaning: string
  /** The parsed body, members in canonical order, where it is JSON and was parsed. */
  readonly json?: unknown
}

/** How a body was read, beside `none` and `json`. Part of the fingerprint, so that equal digests of different readings stay apart. */
type Reading = 'form' | 'multipart' | 'bytes'

/**
 * A request body by its meaning, where its type has one that we know, and else by its bytes. The media type always counts.
 * A body that is not what its type says is refused with `bad_input` and the place.
 */
export function readMeaning(input: BodyInput): BodyMeaning {
  const { body } = input
  const { type, text, isJson } = known.get(input.contentType ?? '') ?? contentTypeOf(input.contentType ?? '')
  const encoding = typeof input.contentEncoding === 'string' ? encodingOf(input.contentEncoding) : null

  // Clients send a type without a body all the time, so that no type makes an empty body malformed.
  if (body.length === 0) return { meaning: lengthPrefixed(['none', text, encoding, null]) }
  if (isJson && encoding === null) {
    try {
      const isParsed = input.choose !== undefined || input.parse === true
      const { meaning, json } = isParsed
        ? readJson(input)
        : { meaning: fingerprintJsonBytes(body, input.shape), json: undefined }
      return { meaning: lengthPrefixed(['json', text, encoding, meaning]), json }
    } catch (error) {
      throw asBodyRefusal(error)
    }
  }
  const sealed = (reading: Reading, content: string | Uint8Array) => ({
    meaning: lengthPrefixed([reading, text, encoding, sha256Hex(content)]),
  })
  if (encoding !== null || type === null) return sealed('bytes', body)
  if (type.value === 'application/x-www-form-urlencoded') return sealed('form', formText(body))
  if (type.value.startsWith('multipart/')) {
    const parts = readMultipart(type, body)
    if (parts !== null) return sealed('multipart', parts)
  }
  return sealed('bytes', body)
}

interface ContentType {
  /** Null for what is malformed. */
  readonly type: Parameterised | null
  /** Null for what is not there. */
  readonly text: string | null
  readonly isJson: boolean
}

/** A service is sent a handful of content types, over and over. Boundaries, which are new each time, are not kept. */
const known = new Map<string, ContentType>()
const MOST_KNOWN = 100
const LONGEST_KNOWN_CHARS = 100

function contentTypeOf(header: string): ContentType {
  const raw = withoutSpace(header)
  if (!raw.isWellFormed()) throw bodyRefusal('content_type', { field: 'content-type' })
  const type = parseMediaType(raw)
  const text = raw === '' ? null : mediaTypeText(raw, type)
  const read = { type, text, isJson: type !== null && isJsonType(type) }
  const worthwhile = header.length <= LONGEST_KNOWN_CHARS && type?.parameters.has('boundary') !== true
  if (worthwhile && known.size < MOST_KNOWN) known.set(header, read)
  return read
}

function encodingOf(header: string): string | null {
  const encoding = withoutSpace(header).toLowerCase()
  if (!encoding.isWellFormed()) throw bodyRefusal('content_type', { field: 'content-encoding' })
  return encoding === '' || encoding === 'identity' ? null : encoding
}

/** JSON in another charset than UTF-8 is none (RFC 8259), but may mean something to an old server: bytes, then. */
function isJsonType(type: Parameterised): boolean {
  const { value } = type
  const named = value === 'application/json' || value === 'text/json' || value.endsWith('+json')
  return named && (charsetOf(type) === null || charsetOf(type) === 'us-ascii')
}

/** @returns `null` for what is no form and malformed: it counts by its bytes, because some servers are lenient */
function readMultipart(type: Parameterised, body: Uint8Array): string | null {
  const isForm = type.value === 'multipart/form-data'
  try {
    return multipartText(body, type.parameters.get('boundary'), isForm)
  } catch (error) {
    if (isForm || !isOnceError(error, 'bad_input')) throw error
    return null
  }
}

function readJson({ body, shape, choose }: BodyInput): Required<BodyMeaning> {
  // Parsed from the canonical text, which has no duplicate members that JSON.parse would drop without a word.
  const canonical = canonicalJson(body)
  const json = parseExactly(canonical)
  const counted = choose === undefined ? canonical : chosenText(choose, json)
  return { meaning: fingerprintOf(counted, shape), json }
}

/** A function that fails on a body was not written for it: the body is refused, as in the ledger. */
function chosenText(choose: (json: unknown) => unknown, json: unknown): string {
  try {
    return canonicalValue(choose(json))
  } catch (cause) {
    const error = asBodyRefusal(cause)
    throw isOnceError(error, 'bad_input') ? error : bodyRefusal('choose_failed', { field: 'body' }, cause)
  }
}

/** More digits than any identifier has; a bound, because making a `bigint` takes more than linear time. */
const MAX_BIGINT_DIGITS = 80

/** JSON.parse without its silent rounding. In canonical text every number that a double rounds has an exponent. */
function parseExactly(canonical: string): unknown {
  return /\de/.test(canonical) ? (JSON.parse(canonical, exactNumber) as unknown) : (JSON.parse(canonical) as unknown)
}

function exactNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  const [, digits, power] = /^(-?\d+)e(\d+)$/.exec(source) ?? []
  if (digits === undefined || power === undefined) return inexactNumber
  if (digits.length + Number(power) > MAX_BIGINT_DIGITS) return inexactNumber
  return BigInt(digits + '0'.repeat(Number(power)))
}

function refuseInexact(): never {
  throw bodyRefusal('inexact_number', { field: 'body' })
}

/** Stands in for a number that no value of the language holds. It can be left out of the choice, and nothing else. */
const inexactNumber = Object.freeze({ toJSON: refuseInexact, [Symbol.toPrimitive]: refuseInexact })
