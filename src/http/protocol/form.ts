import { lengthPrefixed } from '../../ledger/core/digest.ts'
import { bodyRefusal } from './body-refusal.ts'

/** Ten times what common form parsers allow. */
export const MAX_PAIRS = 10_000

/**
 * One text for all spellings of `application/x-www-form-urlencoded`: its names and values as bytes, so that what is no
 * UTF-8 stays apart. As in the URL standard, `+` is a space, `a` is `a=`, and empty pairs are none; an invalid
 * percent-encoding is refused, because parsers disagree about it.
 *
 * Different names may come in any order, like the members of JSON: a client that builds the same request again need not
 * build it in the same order. Pairs of one name keep theirs, and so do those that share what stands before a bracket,
 * because `a[]` and `a[b]` are lists and objects to many parsers, and order makes the difference there.
 */
export function formText(body: Uint8Array): string {
  // One character per byte: no charset is assumed.
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
  const pairs: Pair[] = []
  for (let from = 0; from < text.length; ) {
    const found = text.indexOf('&', from)
    const end = found < 0 ? text.length : found
    if (end > from) {
      if (pairs.length === MAX_PAIRS) throw bodyRefusal('too_many_pairs', { offset: from })
      pairs.push(pairOf(text.slice(from, end), from))
    }
    from = end + 1
  }
  pairs.sort(byHead)
  return lengthPrefixed(pairs.flatMap(({ name, value }) => [name, value]))
}

interface Pair {
  readonly name: string
  readonly value: string
  /** The name up to its first bracket. */
  readonly head: string
}

function pairOf(pair: string, offset: number): Pair {
  const equals = pair.indexOf('=')
  const nameEnd = equals < 0 ? pair.length : equals
  const name = decoded(pair.slice(0, nameEnd), offset)
  const bracket = name.indexOf('[')
  const head = bracket < 0 ? name : name.slice(0, bracket)
  return { name, value: decoded(pair.slice(nameEnd + 1), offset + nameEnd + 1), head }
}

/** Byte by byte, whatever the locale is; the sort is stable. */
function byHead({ head: one }: Pair, { head: other }: Pair): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

function decoded(text: string, offset: number): string {
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  const broken = spaced.search(/%(?![0-9A-Fa-f]{2})/)
  if (broken >= 0) throw bodyRefusal('percent_encoding', { offset: offset + broken })
  return spaced.replace(/%../g, (encoded) => String.fromCharCode(Number.parseInt(encoded.slice(1), 16)))
}
