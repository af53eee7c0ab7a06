import { lengthPrefixed } from '../core/digest.ts'
import { bodyRefusal } from './body-refusal.ts'

const AMPERSAND = 0x26

/**
 * One text for all spellings of `application/x-www-form-urlencoded`: its names and values in their order, as bytes, so
 * that what is no UTF-8 stays apart. As in the URL standard, `+` is a space, `a` is `a=`, and empty pairs are none; an
 * invalid percent-encoding is refused, because parsers disagree about it.
 */
export function formText(body: Uint8Array): string {
  const parts: string[] = []
  for (let from = 0; from < body.length; ) {
    const found = body.indexOf(AMPERSAND, from)
    const end = found < 0 ? body.length : found
    if (end > from) {
      // One character per byte: no charset is assumed.
      const pair = Buffer.from(body.buffer, body.byteOffset + from, end - from).toString('latin1')
      const equals = pair.indexOf('=')
      const nameEnd = equals < 0 ? pair.length : equals
      parts.push(decoded(pair.slice(0, nameEnd), from), decoded(pair.slice(nameEnd + 1), from + nameEnd + 1))
    }
    from = end + 1
  }
  return lengthPrefixed(parts)
}

function decoded(text: string, offset: number): string {
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  const broken = spaced.search(/%(?![0-9A-Fa-f]{2})/)
  if (broken >= 0) throw bodyRefusal('percent_encoding', { offset: offset + broken })
  return spaced.replace(/%../g, (encoded) => String.fromCharCode(Number.parseInt(encoded.slice(1), 16)))
}
