/**
 * Member order of RFC 8785. The scanner writes members in the order it meets them and notes, for every object whose
 * names were out of order, the order they belong in. The bytes are then moved once, whatever the nesting: sorting each
 * object on its way out would move the innermost bytes once per level.
 */

/** Fields of one member in the flat rows: a row of small integers is cheaper than an object per member. */
export const MEMBER_FIELDS = 5
/** Where the name starts, at its opening quote. */
export const NAME = 0
/** Where the name ends, at its closing quote. */
export const NAME_END = 1
/** Where the member ends. */
export const END = 2
/** The objects inside the member are those numbered from FIRST to AFTER, in the order they were opened. */
const FIRST = 3
export const AFTER = 4

/** How one object that was out of order is put right. */
export interface Reorder {
  /** Its first member starts here, and its closing brace stands there. */
  readonly from: number
  readonly to: number
  /** The number of the first object that was opened after it closed. */
  readonly after: number
  /** Its members as flat rows, and the starts of the rows in canonical order. */
  readonly rows: readonly number[]
  readonly order: readonly number[]
}

const BACKSLASH = 0x5c
const LOWER_U = 0x75
const COMMA = 0x2c
/** The first byte of U+E000 and above, up to U+FFFF. */
const BEYOND_SURROGATES = 0xee

/** Up to here insertion sort beats the built-in sort, whose set-up costs more than a small object. */
const INSERTION_SORT_ROWS = 24

/** Up to here a loop beats the call that copies a range. */
const LOOP_COPY_BYTES = 64

/** The values of the two-character escapes, by their letter. */
const escapeUnits: Readonly<Record<number, number>> = {
  0x62: 8,
  0x74: 9,
  0x6e: 10,
  0x66: 12,
  0x72: 13,
  0x22: 0x22,
  0x5c: 0x5c,
}

/**
 * Compares two names in canonical form by UTF-16 code units, without decoding them. UTF-8 has the same order, except
 * that it puts U+E000 to U+FFFF before the characters that are surrogate pairs in UTF-16.
 */
export function compareNames(
  bytes: Uint8Array,
  left: number,
  leftEnd: number,
  right: number,
  rightEnd: number,
): number {
  let a = left
  let b = right
  while (a < leftEnd && b < rightEnd) {
    const x = bytes[a] as number
    if (x === bytes[b] && x !== BACKSLASH) {
      a++
      b++
      continue
    }
    const y = bytes[b] as number
    // Almost always two bytes that stand for themselves.
    if (x !== BACKSLASH && y !== BACKSLASH && x < BEYOND_SURROGATES && y < BEYOND_SURROGATES) return x - y
    const order = unitRank(bytes, a) - unitRank(bytes, b)
    if (order !== 0) return order
    // The same escape on both sides: an escaped character never appears raw as well.
    const width = bytes[a + 1] === LOWER_U ? 6 : 2
    a += width
    b += width
  }
  return leftEnd - a - (rightEnd - b)
}

/** A number that orders the unit at this place: the character for escapes, else its byte with EE and EF moved last. */
function unitRank(bytes: Uint8Array, at: number): number {
  const byte = bytes[at] as number
  if (byte === BACKSLASH) {
    const letter = bytes[at + 1] as number
    // Only \u0000 to \u001f are canonical: the last two digits hold the value.
    if (letter === LOWER_U) return hexValue(bytes[at + 4] as number) * 16 + hexValue(bytes[at + 5] as number)
    return escapeUnits[letter] as number
  }
  return byte === 0xee || byte === 0xef ? byte + 0x10 : byte
}

function hexValue(digit: number): number {
  return digit <= 0x39 ? digit - 0x30 : digit - 0x57
}

/** The starts of the rows in the order of their names, or `null` when two names are equal. */
export function orderRows(bytes: Uint8Array, rows: readonly number[]): number[] | null {
  if (rows.length > INSERTION_SORT_ROWS * MEMBER_FIELDS) return sortRows(bytes, rows)
  const order: number[] = []
  for (let row = 0; row < rows.length; row += MEMBER_FIELDS) {
    let hole = order.push(row) - 1
    const name = (rows[row + NAME] as number) + 1
    const nameEnd = rows[row + NAME_END] as number
    while (hole > 0) {
      const before = order[hole - 1] as number
      const last = (rows[before + NAME] as number) + 1
      const compared = compareNames(bytes, last, rows[before + NAME_END] as number, name, nameEnd)
      if (compared === 0) return null
      if (compared < 0) break
      order[hole--] = before
    }
    order[hole] = row
  }
  return order
}

function sortRows(bytes: Uint8Array, rows: readonly number[]): number[] | null {
  const order: number[] = []
  for (let row = 0; row < rows.length; row += MEMBER_FIELDS) order.push(row)
  order.sort((left, right) => compareRows(bytes, rows, left, right))
  for (let at = 1; at < order.length; at++) {
    if (compareRows(bytes, rows, order[at - 1] as number, order[at] as number) === 0) return null
  }
  return order
}

function compareRows(bytes: Uint8Array, rows: readonly number[], left: number, right: number): number {
  const leftName = (rows[left + NAME] as number) + 1
  const rightName = (rows[right + NAME] as number) + 1
  return compareNames(bytes, leftName, rows[left + NAME_END] as number, rightName, rows[right + NAME_END] as number)
}

/** What is moved where. Every object has an entry, in the order they open: `null` if its members were in order. */
interface Move {
  readonly objects: readonly (Reorder | null)[]
  readonly bytes: Uint8Array
  readonly target: Uint8Array
}

/**
 * Writes a range to the target, members in canonical order, and returns the end of the target. In the range stand the
 * objects numbered from `first` to `after`.
 */
export function writeOrdered(
  move: Move,
  from: number,
  to: number,
  first: number,
  after: number,
  written: number,
): number {
  let start = from
  let number = first
  let end = written
  while (number < after) {
    const object = move.objects[number++] as Reorder | null
    if (object === null) continue
    end = copy(move, start, object.from, end)
    const { rows, order } = object
    for (let at = 0; at < order.length; at++) {
      const row = order[at] as number
      const inside = rows[row + FIRST] as number
      const beyond = rows[row + AFTER] as number
      if (at > 0) move.target[end++] = COMMA
      if (inside === beyond) end = copy(move, rows[row + NAME] as number, rows[row + END] as number, end)
      else end = writeOrdered(move, rows[row + NAME] as number, rows[row + END] as number, inside, beyond, end)
    }
    start = object.to
    number = object.after
  }
  return copy(move, start, to, end)
}

function copy({ bytes, target }: Move, from: number, to: number, written: number): number {
  let end = written
  if (to - from > LOOP_COPY_BYTES) target.set(bytes.subarray(from, to), end)
  else for (let at = from; at < to; at++) target[end++] = bytes[at] as number
  return written + (to - from)
}
