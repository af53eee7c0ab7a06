import { OnceError } from '../../ledger/core/errors.ts'
import { withoutSpace } from './content-type.ts'

/** A caller's key, or why there is none. Details name the place and never repeat the key. */
export type KeyFound =
  | { readonly key: string }
  | { readonly problem: 'missing' }
  | { readonly problem: 'invalid'; readonly detail: string }

/** What every store and every header carries without trouble; the longest key of the providers that we know. */
const MAX_KEY_BYTES = 255

/** What almost every client sends: visible ASCII without a quote or a comma. */
const plainKey = new RegExp(`^[!#-+\\--~]{1,${MAX_KEY_BYTES}}$`)

/** A quoted key, every character escaped, with ignored parameters; a longer header is no key. */
const MAX_HEADER_CHARS = 4_096

/**
 * Headers under which senders of webhooks put the id of a delivery. It stays the same when they send it again, so that
 * it serves as a key; all of them are bare and within its limits.
 */
export const webhookIdHeaders = {
  standardWebhooks: 'webhook-id',
  svix: 'svix-id',
  github: 'x-github-delivery',
} as const

/**
 * The key in the values of its header, one per header line. A quoted string (RFC 9651) and a bare value are equal when
 * they denote the same text, because SDKs send it bare and the IETF draft wants it quoted.
 */
export function parseKey(values: readonly string[]): KeyFound {
  const [value] = values
  if (value === undefined) return { problem: 'missing' }
  if (values.length > 1) return invalid(`The key came in a duplicate header (${values.length} of them).`)
  if (plainKey.test(value)) return { key: value }
  if (value.length > MAX_HEADER_CHARS) return invalid(`The header is longer than ${MAX_HEADER_CHARS} characters.`)
  const trimmed = withoutSpace(value)
  return trimmed.startsWith('"') ? quotedKey(trimmed) : bareKey(trimmed)
}

/**
 * The key in a field of a JSON body. The field is the text itself: quotes in it are part of the key, and white space is
 * not trimmed. A missing or null field is a missing key.
 *
 * @param field a member name; dots lead into nested objects
 */
export function keyFromBody(json: unknown, field: string): KeyFound {
  const steps = field.split('.')
  if (steps.includes('')) {
    throw new OnceError('bad_option', `The key field "${field}" has an empty step.`, { details: { field } })
  }
  let value = json
  for (const step of steps) {
    // Own members of objects only: neither `constructor` nor the length of a list is something that the caller sent.
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step)) {
      return { problem: 'missing' }
    }
    value = (value as Readonly<Record<string, unknown>>)[step]
  }
  if (value === undefined || value === null) return { problem: 'missing' }
  // A number is refused, because 1 and 1.0 would be one key for some clients and two for others.
  if (typeof value !== 'string') return invalid(`The key field \`${field}\` is not a string.`)
  return checkedKey(value)
}

function invalid(detail: string): KeyFound {
  return { problem: 'invalid', detail }
}

/**
 * A bare value is taken whole: base64, a UUID that begins with a digit and `:bytes:` are no structured tokens, and
 * SDKs send them. A comma is the one exception, because it is how proxies join two headers into one.
 */
function bareKey(text: string): KeyFound {
  const comma = text.indexOf(',')
  return comma < 0 ? checkedKey(text) : invalid(`A comma outside of quotes at offset ${comma}: send one key.`)
}

/** The rules for the text itself, wherever it came from. */
function checkedKey(text: string): KeyFound {
  if (text === '') return invalid('The key is empty.')
  if (text.length > MAX_KEY_BYTES) return invalid(`The key is longer than ${MAX_KEY_BYTES} bytes.`)
  for (let at = 0; at < text.length; at++) {
    const fault = faultOf(text.charCodeAt(at))
    if (fault !== null) return invalid(`The key contains ${fault} at offset ${at}.`)
  }
  return { key: text }
}

/** Why a character cannot be in a key. A space is refused in quotes too, because no bare key could be equal to it. */
function faultOf(code: number): string | null {
  if (code === 0x20) return 'a space'
  if (code < 0x20 || code === 0x7f) return 'a control character'
  return code > 0x7f ? 'a character outside of ASCII' : null
}

/** RFC 9651, section 4.2.5: only the quote and the backslash may be escaped. */
function quotedKey(value: string): KeyFound {
  let text = ''
  let at = 1
  for (;;) {
    if (at >= value.length) return invalid('The quoted key has no closing quote.')
    const char = value.charAt(at)
    if (char === '"') break
    const fault = faultOf(value.charCodeAt(at))
    if (fault !== null) return invalid(`The key contains ${fault} at offset ${at}.`)
    if (char !== '\\') text += char
    else {
      const escaped = value.charAt(++at)
      if (escaped !== '"' && escaped !== '\\') return invalid(`A backslash at offset ${at - 1} escapes nothing.`)
      text += escaped
    }
    at++
  }
  const end = parametersEnd(value, at + 1)
  if (end < value.length) {
    const comma = /^[ \t]*,/.test(value.slice(end))
    const what = comma ? 'A comma outside of quotes' : 'Neither the end nor a well-formed parameter'
    return invalid(`${what} at offset ${end}.`)
  }
  return checkedKey(text)
}

/** The items of RFC 9651 that a parameter may hold. They are ignored, so their contents are not decoded. */
const items = [
  /-?\d{1,12}\.\d{1,3}/,
  /@?-?\d{1,15}/,
  /"(?:[ !#-[\]-~]|\\["\\])*"/,
  /[A-Za-z*][!#$%&'*+.^_`|~\w:/-]*/,
  /:[A-Za-z0-9+/=]*:/,
  /\?[01]/,
  /%"(?:[ !#$&-~]|%[0-9a-f]{2})*"/,
]
const parameter = new RegExp(`; *[a-z*][a-z0-9_.*-]*(?:=(?:${items.map(({ source }) => source).join('|')}))?`, 'y')

/** Where the well-formed parameters end. */
function parametersEnd(value: string, from: number): number {
  let end = from
  parameter.lastIndex = from
  while (parameter.test(value)) end = parameter.lastIndex
  return end
}
