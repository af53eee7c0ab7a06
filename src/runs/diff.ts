/** One place where two values differ. `undefined` stands for "is not there". */
export interface Difference {
  /** `$.to[0].name`, from the value on. */
  readonly path: string
  readonly original: unknown
  readonly replayed: unknown
}

/** More differences than this do not help a reader. */
const MOST_DIFFERENCES = 100

/** Compares by structure: the order of members does not count, that of elements does. Values are those of the codec. */
export function differences(original: unknown, replayed: unknown): readonly Difference[] {
  const found: Difference[] = []
  compare('$', original, replayed, found)
  return found
}

function compare(path: string, original: unknown, replayed: unknown, found: Difference[]): void {
  if (found.length >= MOST_DIFFERENCES || Object.is(original, replayed)) return
  const [left, right] = [membersOf(original), membersOf(replayed)]
  if (left === null || right === null || left.kind !== right.kind) {
    if (!sameScalar(original, replayed)) found.push({ path, original, replayed })
    return
  }
  for (const name of new Set([...left.members.keys(), ...right.members.keys()])) {
    const below = left.kind === 'list' ? `${path}[${name}]` : `${path}.${name}`
    compare(below, left.members.get(name), right.members.get(name), found)
  }
}

interface Members {
  readonly kind: 'list' | 'record' | 'map' | 'set'
  readonly members: ReadonlyMap<string, unknown>
}

function membersOf(value: unknown): Members | null {
  if (Array.isArray(value)) return { kind: 'list', members: numbered(value) }
  if (value instanceof Map) {
    return { kind: 'map', members: new Map([...value].map(([key, each]) => [String(key), each as unknown])) }
  }
  if (value instanceof Set) return { kind: 'set', members: numbered([...value]) }
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof Date) return null
  return { kind: 'record', members: new Map(Object.entries(value)) }
}

function numbered(values: readonly unknown[]): Map<string, unknown> {
  return new Map(values.map((each, index) => [String(index), each]))
}

function sameScalar(left: unknown, right: unknown): boolean {
  if (left instanceof Date && right instanceof Date) return left.getTime() === right.getTime()
  if (ArrayBuffer.isView(left) && ArrayBuffer.isView(right)) return Buffer.compare(bytesOf(left), bytesOf(right)) === 0
  return false
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/**
 * Whether the caller declared that a path may differ: `*` stands for one name or number, `**` for any number of them.
 */
export function isIgnored(path: string, ignored: readonly string[]): boolean {
  return ignored.some((pattern) => matches(pattern).test(path))
}

/**
 * A value without the places that may differ. An element that may leaves its place empty, so that the others keep
 * theirs.
 */
export function without(value: unknown, ignored: readonly string[], path = '$'): unknown {
  if (ignored.length === 0 || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    return value.map((each: unknown, index) => {
      const place = `${path}[${index}]`
      return isIgnored(place, ignored) ? null : without(each, ignored, place)
    })
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => {
      const place = `${path}.${name}`
      return isIgnored(place, ignored) ? [] : [[name, without(each, ignored, place)]]
    }),
  )
}

const patterns = new Map<string, RegExp>()
/** Declared by people, so few; a bound all the same. */
const MOST_PATTERNS = 1_000

function matches(pattern: string): RegExp {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  if (patterns.size >= MOST_PATTERNS) patterns.clear()
  const text = pattern
    .split(/(\*\*|\*)/)
    .map((part) =>
      part === '**' ? '.*' : part === '*' ? '[^.\\[\\]]+' : part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'),
    )
    .join('')
  // What is below an ignored place is ignored with it.
  const made = new RegExp(`^${text}(?:[.\\[].*)?$`, 's')
  patterns.set(pattern, made)
  return made
}

/** The longest part of a list, in its order, whose values only rise. */
export function longestRising<T>(list: readonly T[], valueOf: (item: T) => number): readonly T[] {
  /** Of every length the row that ends lowest, by its last item; a row knows the one that it continues. */
  interface Row {
    readonly item: T
    readonly before: Row | undefined
  }
  const rows: Row[] = []
  for (const item of list) {
    let [from, to] = [0, rows.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (valueOf((rows[middle] as Row).item) < valueOf(item)) from = middle + 1
      else to = middle
    }
    rows[from] = { item, before: rows[from - 1] }
  }
  const longest: T[] = []
  for (let row = rows.at(-1); row !== undefined; row = row.before) longest.push(row.item)
  return longest.reverse()
}
