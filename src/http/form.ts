import { lengthPrefixed } from '../core/digest.ts'
import { bodyRefusal } from './body-refusal.ts'

/** Ten times what common form parsers allow. */
export const MAX_PAIRS = 10_000

/**
 * One text for all spellings of `application/x-www-form-urlencoded`: its names and values in their order, as bytes, so
 * that what is no UTF-8 stays apart. As in the URL standard, `+` is a space, `a` is `a=`, and empty pairs are none; an
 * invalid percent-encoding is refused, because parsers disagree about it.
 */
export function formText(body: Uint8Array): string {
  // One character per byte: no charset is assumed.
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
  const parts: string[] = []
  for (let from = 0; from < text.length; ) {
    const found = text.indexOf('&', from)
    const end = found < 0 ? text.length : found
    if (end > from) {
      if (parts.length === 2 * MAX_PAIRS) throw bodyRefusal('too_many_pairs', { offset: from })
      const pair = text.slice(from, end)
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
