import { lengthPrefixed, sha256Hex } from '../../ledger/core/digest.ts'
import { bodyRefusal } from './body-refusal.ts'
import { hasControl, mediaTypeText, parseDisposition, parseMediaType, withoutSpace } from './content-type.ts'

/** What common form parsers allow; far more than forms have. */
export const MAX_PARTS = 1_000

/** A name, a file name and a type, with room for long names in many bytes per character. */
export const MAX_PART_HEADER_BYTES = 8_192

/** RFC 2046, section 5.1.1. */
const MAX_BOUNDARY_CHARS = 70

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DASH = 0x2d

const blankLine = Buffer.from('\r\n\r\n')

/**
 * One text for all spellings of a multipart body: its parts in their order, each by what its headers mean and by its
 * bytes. Boundary, preamble, epilogue, and the case and order of headers do not count. A part of a form is its
 * disposition, type and encoding, because RFC 7578 has parsers ignore all else; other multipart types keep every header.
 *
 * Every byte is looked at a bounded number of times, whatever it is.
 */
export function multipartText(body: Uint8Array, boundary: string | undefined, isForm: boolean): string {
  if (boundary === undefined || boundary.length > MAX_BOUNDARY_CHARS || !/^[!-~ ]*[!-~]$/.test(boundary)) {
    throw bodyRefusal('boundary', { field: 'content-type' })
  }
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const parts: string[] = []
  // The first delimiter may be the first line; the line end before it is then outside of the body.
  let line = matches(bytes, delimiter, -2) ? -2 : find(bytes, delimiter, 0)
  if (line === null) throw bodyRefusal('no_delimiter', { offset: 0 })
  for (;;) {
    let lineEnd: number = line + delimiter.length
    if (bytes[lineEnd] === DASH && bytes[lineEnd + 1] === DASH) return lengthPrefixed(parts)
    while (bytes[lineEnd] === SPACE || bytes[lineEnd] === TAB) lineEnd++
    // Also where the boundary only begins the line: by RFC 2046 that is a delimiter, and some parsers disagree.
    if (bytes[lineEnd] !== CR || bytes[lineEnd + 1] !== LF) throw bodyRefusal('delimiter', { offset: lineEnd })
    if (parts.length === MAX_PARTS) throw bodyRefusal('too_many_parts', { offset: lineEnd })
    // From this line end on: a delimiter that shares it ends a part that has no headers, which is refused below.
    line = find(bytes, delimiter, lineEnd)
    if (line === null) throw bodyRefusal('not_closed', { offset: bytes.length })
    parts.push(partText(bytes, lineEnd + 2, line, isForm))
  }
}

/**
 * A loop instead of `indexOf`, whose skipping is slow on bytes that resemble the boundary. The needle holds only one
 * carriage return, its first byte, so that no byte is compared for two candidates.
 */
function find(bytes: Buffer, delimiter: Buffer, from: number): number | null {
  const last = bytes.length - delimiter.length
  for (let at = from; at <= last; at++) if (bytes[at] === CR && matches(bytes, delimiter, at)) return at
  return null
}

/** @param at negative where the delimiter begins before the body */
function matches(bytes: Buffer, delimiter: Buffer, at: number): boolean {
  for (let k = at < 0 ? -at : 1; k < delimiter.length; k++) if (bytes[at + k] !== delimiter[k]) return false
  return true
}

function partText(bytes: Buffer, from: number, to: number, isForm: boolean): string {
  // A part without headers begins with the empty line.
  if (bytes[from] === CR && bytes[from + 1] === LF) {
    if (isForm) throw bodyRefusal('part_name', { offset: from })
    return lengthPrefixed([lengthPrefixed([]), sha256Hex(bytes.subarray(from + 2, to))])
  }
  const window = bytes.subarray(from, Math.min(to, from + MAX_PART_HEADER_BYTES + blankLine.length))
  const length = window.indexOf(blankLine)
  if (length < 0) {
    throw bodyRefusal(to - from > MAX_PART_HEADER_BYTES ? 'part_headers_too_large' : 'part_headers', { offset: from })
  }
  const headers = headersOf(window.toString('latin1', 0, length), from)
  const meant = isForm ? formHeaders(headers, from) : otherHeaders(headers)
  return lengthPrefixed([meant, sha256Hex(bytes.subarray(from + length + blankLine.length, to))])
}

type PartHeaders = readonly (readonly [name: string, value: string])[]

/** Names in lower case; a value that was folded over several lines is one line again. */
function headersOf(text: string, offset: number): PartHeaders {
  return text
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n')
    .map((line) => {
      const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):(.*)$/s.exec(line) ?? []
      if (name === undefined || value === undefined || hasControl(value)) throw bodyRefusal('part_headers', { offset })
      return [name.toLowerCase(), withoutSpace(value)] as const
    })
}

function formHeaders(headers: PartHeaders, offset: number): string {
  const disposition = parseDisposition(only(headers, 'content-disposition', offset) ?? '')
  if (disposition?.value !== 'form-data') throw bodyRefusal('part_headers', { offset })
  const { parameters } = disposition
  if (!parameters.has('name')) throw bodyRefusal('part_name', { offset })
  // All parameters: clients have several ways to name a file, and servers several tastes.
  const sorted = [...parameters].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const type = only(headers, 'content-type', offset)
  const encoding = only(headers, 'content-transfer-encoding', offset)?.toLowerCase() ?? null
  return lengthPrefixed([
    type === null ? null : mediaTypeText(type, parseMediaType(type)),
    // These three say that the bytes are the value, as they are without the header.
    encoding === '7bit' || encoding === '8bit' || encoding === 'binary' ? null : encoding,
    ...sorted.flat(),
  ])
}

/** Twice the same header would mean something else to every parser. */
function only(headers: PartHeaders, name: string, offset: number): string | null {
  const values = headers.filter((header) => header[0] === name)
  if (values.length > 1) throw bodyRefusal('part_headers', { offset })
  return values[0]?.[1] ?? null
}

function otherHeaders(headers: PartHeaders): string {
  const sorted = headers.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return lengthPrefixed(
    sorted.flatMap(([name, value]) => [
      name,
      name === 'content-type' ? mediaTypeText(value, parseMediaType(value)) : value,
    ]),
  )
}
