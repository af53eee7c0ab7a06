import { DECIMAL_BYTES_MOST, writeDecimal } from './canonical-decimal.ts'
import { canonicalNumber } from './canonical-number.ts'
import {
  AFTER,
  compareNames,
  END,
  MEMBER_FIELDS,
  NAME,
  NAME_END,
  orderRows,
  type Reorder,
  writeOrdered,
} from './canonical-order.ts'
import { CanonicalError, type CanonicalReason, MAX_JSON_DEPTH } from './canonical-rules.ts'

/**
 * JSON to canonical JSON, from bytes to bytes in one pass: no value is built, so no number is rounded and no member is
 * lost, and most tokens are checked and copied in the same loop.
 *
 * The state is in the module, not in an object: the scanner is synchronous and calls no code of others, so that two
 * scans never overlap, and the buffers are made once.
 */

/** Buffers of this size stay for the next call; larger ones are given back. */
const KEEP_BYTES = 64 * 1_024

/** A double distinguishes all decimals of so many digits, so that their text needs no check. */
const SAFE_DIGITS = 15

/** RFC 8785 writes fractions without an exponent down to 0.000001. */
const PLAIN_FRACTION_DIGITS = 6

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LOWER_E = 0x65
const LOWER_U = 0x75
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The bytes that stand for themselves in a string. A table makes the busiest loop a third faster than comparisons. */
const plain = Uint8Array.from({ length: 256 }, (_, byte) => {
  return byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0
})

/** The most that one UTF-16 code unit takes. */
const UTF8_BYTES_PER_UNIT = 3

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The input, followed by a zero: no token can contain one, so that every loop ends without a check of its length. */
let source = new Uint8Array(KEEP_BYTES)
let length = 0
/**
 * What has been written. Always has room for the rest of the input: only numbers can grow, and they make room first.
 */
let out = new Uint8Array(KEEP_BYTES)
let written = 0
/** One entry per object, in the order they open. */
let objects: (Reorder | null)[] = []
let reordered = false
/** A stack of the members of the objects that are open, as flat rows. */
let members: number[] = []
let memberTop = 0

/** The canonical form of JSON, as UTF-8. The answer is a view of a shared buffer: use it before the next call. */
export function canonicalBytes(json: string | Uint8Array): Uint8Array {
  if (typeof json === 'string') loadText(json)
  else loadBytes(json)
  source[length] = 0
  written = 0
  objects = []
  reordered = false
  memberTop = 0
  try {
    const end = skipSpace(scanValue(skipSpace(0), 0))
    if (end !== length) unexpected(end)
    if (!reordered) return out.subarray(0, written)
    // The input has been read, so that its buffer can take the answer.
    if (source.length < written) source = new Uint8Array(written)
    writeOrdered({ objects, bytes: out, target: source }, 0, written, 0, objects.length, 0)
    return source.subarray(0, written)
  } finally {
    if (out.length > KEEP_BYTES || source.length > KEEP_BYTES) release()
  }
}

function loadBytes(json: Uint8Array): void {
  length = json.length
  if (length >= KEEP_BYTES) {
    source = new Uint8Array(length + 1)
    out = new Uint8Array(length + 1)
  }
  // A copy is cheap, gives one array type to the loops, and cannot be changed by the caller.
  source.set(json)
}

function loadText(json: string): void {
  // The encoder would replace half a surrogate pair silently, and two different texts would become equal.
  if (!json.isWellFormed()) fail('lone_surrogate', encoder.encode(json.slice(0, json.search(/\p{Surrogate}/u))).length)
  // Into the buffer where it surely fits: a fresh array for every text costs more than the scan.
  if (json.length * UTF8_BYTES_PER_UNIT >= KEEP_BYTES) loadBytes(encoder.encode(json))
  else length = encoder.encodeInto(json, source).written
}

function release(): void {
  source = new Uint8Array(KEEP_BYTES)
  out = new Uint8Array(KEEP_BYTES)
  objects = []
  members = []
}

function fail(reason: CanonicalReason, offset: number): never {
  throw new CanonicalError(reason, { offset })
}

function unexpected(offset: number): never {
  const mark = byteAt(offset) === 0xef && byteAt(offset + 1) === 0xbb && byteAt(offset + 2) === 0xbf
  fail(mark ? 'byte_order_mark' : 'syntax', offset)
}

function byteAt(at: number): number {
  return source[at] as number
}

function skipSpace(from: number): number {
  let at = from
  let byte = source[at] as number
  // Most places have no space: one comparison finds out.
  while (byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09))
    byte = source[++at] as number
  return at
}

/** @returns the place after the value, as all scanners do */
function scanValue(at: number, depth: number): number {
  const byte = source[at] as number
  if (byte === QUOTE) return scanString(at)
  if (byte === OPEN_BRACE) return depth < MAX_JSON_DEPTH ? scanObject(at, depth + 1) : fail('too_deep', at)
  if (byte === OPEN_BRACKET) return depth < MAX_JSON_DEPTH ? scanArray(at, depth + 1) : fail('too_deep', at)
  if (byte === MINUS || (byte >= ZERO && byte <= NINE)) return scanNumber(at)
  if (byte === 0x74) return scanWord(at, 'true')
  if (byte === 0x66) return scanWord(at, 'false')
  if (byte === 0x6e) return scanWord(at, 'null')
  return unexpected(at)
}

function scanWord(from: number, word: string): number {
  for (let at = 0; at < word.length; at++) {
    const byte = byteAt(from + at)
    if (byte !== word.charCodeAt(at)) unexpected(from + at)
    out[written++] = byte
  }
  return from + word.length
}

function scanArray(open: number, depth: number): number {
  out[written++] = OPEN_BRACKET
  let at = skipSpace(open + 1)
  if (source[at] !== CLOSE_BRACKET) {
    for (;;) {
      at = skipSpace(scanValue(at, depth))
      if (source[at] === CLOSE_BRACKET) break
      if (source[at] !== COMMA) unexpected(at)
      out[written++] = COMMA
      at = skipSpace(at + 1)
    }
  }
  out[written++] = CLOSE_BRACKET
  return at + 1
}

function scanObject(open: number, depth: number): number {
  const number = objects.push(null) - 1
  const base = memberTop
  out[written++] = OPEN_BRACE
  const from = written
  let inOrder = true
  let at = skipSpace(open + 1)
  if (source[at] !== CLOSE_BRACE) {
    for (;;) {
      if (source[at] !== QUOTE) unexpected(at)
      const name = written
      at = skipSpace(scanString(at))
      const nameEnd = written - 1
      const row = memberTop
      if (inOrder && row > base) {
        const before = row - MEMBER_FIELDS
        const [last, lastEnd] = [members[before + NAME] as number, members[before + NAME_END] as number]
        const order = compareNames(out, last + 1, lastEnd, name + 1, nameEnd)
        // Equal names are refused at the object that has them.
        if (order === 0) fail('duplicate_member', open)
        inOrder = order < 0
      }
      if (source[at] !== COLON) unexpected(at)
      out[written++] = COLON
      // Every field is written at once, in order, so that the stack never has holes, which would make it slow.
      members[row] = name
      members[row + 1] = nameEnd
      members[row + 2] = 0
      members[row + 3] = objects.length
      members[row + 4] = 0
      memberTop = row + MEMBER_FIELDS
      at = skipSpace(scanValue(skipSpace(at + 1), depth))
      members[row + END] = written
      members[row + AFTER] = objects.length
      if (source[at] === CLOSE_BRACE) break
      if (source[at] !== COMMA) unexpected(at)
      out[written++] = COMMA
      at = skipSpace(at + 1)
    }
  }
  if (!inOrder) {
    const rows = members.slice(base, memberTop)
    const order = orderRows(out, rows) ?? fail('duplicate_member', open)
    objects[number] = { from, to: written, after: objects.length, rows, order }
    reordered = true
  }
  memberTop = base
  out[written++] = CLOSE_BRACE
  return at + 1
}

function scanString(open: number): number {
  const from = source
  const to = out
  let at = open + 1
  let end = written
  to[end++] = QUOTE
  for (;;) {
    let byte = from[at] as number
    while (plain[byte] === 1) {
      to[end++] = byte
      byte = from[++at] as number
    }
    if (byte === QUOTE) break
    written = end
    if (byte === BACKSLASH) at = scanEscape(at)
    else if (byte >= 0x80) at = scanMultibyte(at)
    else fail(at >= length ? 'syntax' : 'control_character', at)
    end = written
  }
  to[end++] = QUOTE
  written = end
  return at + 1
}

/**
 * Checks and copies one character of two to four bytes (RFC 3629: no overlong forms, no surrogates, no end of range).
 */
function scanMultibyte(at: number): number {
  const lead = byteAt(at)
  const second = byteAt(at + 1)
  let width = 0
  if (lead >= 0xc2 && lead <= 0xdf) width = isTrail(second) ? 2 : 0
  else if (lead >= 0xe0 && lead <= 0xef) {
    const fits = lead === 0xe0 ? second >= 0xa0 : lead === 0xed ? second < 0xa0 : true
    if (fits && isTrail(second) && isTrail(byteAt(at + 2))) width = 3
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    const fits = lead === 0xf0 ? second >= 0x90 : lead === 0xf4 ? second < 0x90 : true
    if (fits && isTrail(second) && isTrail(byteAt(at + 2)) && isTrail(byteAt(at + 3))) width = 4
  }
  if (width === 0) fail('invalid_utf8', at)
  for (let k = 0; k < width; k++) out[written++] = byteAt(at + k)
  return at + width
}

function isTrail(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

function scanEscape(at: number): number {
  const letter = byteAt(at + 1)
  if (letter === LOWER_U) return scanUnicodeEscape(at)
  if (!'"\\/bfnrt'.includes(String.fromCharCode(letter))) unexpected(at + 1)
  if (letter !== 0x2f) out[written++] = BACKSLASH
  out[written++] = letter
  return at + 2
}

function scanUnicodeEscape(at: number): number {
  const unit = hexUnit(at + 2)
  if (unit < 0xd800 || unit > 0xdfff) {
    writeCharacter(unit)
    return at + 6
  }
  if (unit > 0xdbff || byteAt(at + 6) !== BACKSLASH || byteAt(at + 7) !== LOWER_U) fail('lone_surrogate', at)
  const low = hexUnit(at + 8)
  if (low < 0xdc00 || low > 0xdfff) fail('lone_surrogate', at)
  writeCharacter(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
  return at + 12
}

function hexUnit(at: number): number {
  let unit = 0
  for (let k = at; k < at + 4; k++) {
    const byte = byteAt(k)
    const letter = byte | 0x20
    if (byte >= ZERO && byte <= NINE) unit = unit * 16 + byte - ZERO
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57
    else unexpected(k)
  }
  return unit
}

/** Writes a character that was escaped the way RFC 8785 wants it: escaped only if it must be, and then shortly. */
function writeCharacter(code: number): void {
  if (code === QUOTE || code === BACKSLASH || code < 0x20) {
    // JSON.stringify has the same rules for these.
    writeAscii(JSON.stringify(String.fromCharCode(code)).slice(1, -1))
  } else if (code < 0x80) {
    out[written++] = code
  } else if (code < 0x800) {
    out[written++] = 0xc0 | (code >> 6)
    out[written++] = 0x80 | (code & 0x3f)
  } else if (code < 0x10000) {
    out[written++] = 0xe0 | (code >> 12)
    out[written++] = 0x80 | ((code >> 6) & 0x3f)
    out[written++] = 0x80 | (code & 0x3f)
  } else {
    out[written++] = 0xf0 | (code >> 18)
    out[written++] = 0x80 | ((code >> 12) & 0x3f)
    out[written++] = 0x80 | ((code >> 6) & 0x3f)
    out[written++] = 0x80 | (code & 0x3f)
  }
}

function writeAscii(text: string): void {
  for (let at = 0; at < text.length; at++) out[written++] = text.charCodeAt(at)
}

function scanNumber(from: number): number {
  const negative = source[from] === MINUS
  const whole = negative ? from + 1 : from
  const isZero = source[whole] === ZERO
  let at = isZero ? whole + 1 : skipDigits(whole)
  let end = at
  if (source[at] === POINT) {
    at = skipDigits(at + 1)
    // Zeros at the end of a fraction say nothing, and neither does a fraction of zeros only.
    const point = end
    end = at
    while (source[end - 1] === ZERO) end--
    if (end === point + 1) end = point
    if (isZero && end - point - 1 > PLAIN_FRACTION_DIGITS) return writeNumber(from, skipExponent(at))
  }
  if (((source[at] as number) | 0x20) === LOWER_E || end - whole > SAFE_DIGITS)
    return writeNumber(from, skipExponent(at))
  if (negative && !(isZero && end === whole + 1)) out[written++] = MINUS
  for (let k = whole; k < end; k++) out[written++] = source[k] as number
  return at
}

function skipDigits(from: number): number {
  let at = from
  let byte = source[at] as number
  while (byte >= ZERO && byte <= NINE) byte = source[++at] as number
  return at === from ? unexpected(at) : at
}

function skipExponent(at: number): number {
  if ((byteAt(at) | 0x20) !== LOWER_E) return at
  const sign = byteAt(at + 1)
  return skipDigits(sign === MINUS || sign === 0x2b ? at + 2 : at + 1)
}

/** The numbers that are not plainly canonical already: exponents, many digits, tiny fractions. */
function writeNumber(from: number, to: number): number {
  // `1e20` grows to 21 digits: keep the room that the rest of the input needs.
  makeRoom(DECIMAL_BYTES_MOST + length - to)
  const end = writeDecimal(source, from, to, out, written)
  if (end >= 0) written = end
  else {
    const text = canonicalNumber(decoder.decode(source.subarray(from, to))) ?? fail('number_out_of_range', from)
    makeRoom(text.length + length - to)
    writeAscii(text)
  }
  return to
}

function makeRoom(bytes: number): void {
  const room = written + bytes + 1
  if (out.length >= room) return
  const larger = new Uint8Array(2 * room)
  larger.set(out.subarray(0, written))
  out = larger
}
