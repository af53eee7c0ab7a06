import { BaseError } from '../../ledger/core/base-error.ts'
import type { Counts, Order } from './count.ts'
import { countOf, safeCount } from './count.ts'
import { SortedCounts } from './sorted-counts.ts'

/** Nodes of one clock: each costs memory in every message. */
const MOST_NODES = 10_000

/**
 * What a node has seen of every other one. `before` holds exactly when everything that one clock has seen the other has
 * seen, too.
 */
export class VectorClock {
  readonly node: string
  readonly #counts: Map<string, number>
  /** Made when it is asked for, and kept until the clock moves. */
  #sorted: SortedCounts | null = null

  constructor(node: string, counts: Counts = {}) {
    if (node === '') throw new BaseError('bad_input', 'A vector clock needs the name of its node.')
    this.node = node
    this.#counts = new Map(Object.entries(checked(counts)))
  }

  /** A copy; zeros are left out. */
  get counts(): Counts {
    return Object.fromEntries(this.#counts)
  }

  /** The form to compare with many others. */
  get sorted(): SortedCounts {
    this.#sorted ??= new SortedCounts(this.counts)
    return this.#sorted
  }

  count(node: string): number {
    return this.#counts.get(node) ?? 0
  }

  tick(): Counts {
    this.#sorted = null
    this.#counts.set(this.node, safeCount('count', this.count(this.node) + 1))
    return this.counts
  }

  /** The clock to send with a message. */
  send(): Counts {
    return this.tick()
  }

  /** A message came: element by element the larger count, then one more of our own. */
  receive(counts: Counts): Counts {
    this.#sorted = null
    for (const [node, count] of Object.entries(checked(counts))) {
      if (count > this.count(node)) this.#counts.set(node, count)
    }
    if (this.#counts.size > MOST_NODES) throw tooMany()
    return this.tick()
  }

  compare(other: Counts | SortedCounts | VectorClock): Order {
    if (other instanceof SortedCounts) return this.sorted.compare(other)
    return other instanceof VectorClock ? this.sorted.compare(other.sorted) : compareCounts(this.counts, other)
  }
}

/** Looks up every name of both: for clocks of many nodes that are compared often, see `SortedCounts`. */
export function compareCounts(a: Counts, b: Counts): Order {
  let less = false
  let more = false
  for (const node in a) {
    const mine = countOf(a, node)
    const theirs = countOf(b, node)
    if (mine < theirs) less = true
    else if (mine > theirs) more = true
  }
  // A node that stands only in the other clock counts 0 here.
  if (!less) for (const node in b) if (countOf(b, node) > countOf(a, node)) less = true
  if (less) return more ? 'concurrent' : 'before'
  return more ? 'after' : 'equal'
}

/** Counts by place, for a set of nodes that is fixed: five numbers instead of five names. */
export type DenseCounts = readonly number[]

/** As `compareCounts`, for counts by place. */
export function compareDense(a: DenseCounts, b: DenseCounts): Order {
  let less = false
  let more = false
  const length = Math.max(a.length, b.length)
  for (let place = 0; place < length; place++) {
    const difference = (a[place] ?? 0) - (b[place] ?? 0)
    if (difference < 0) less = true
    else if (difference > 0) more = true
  }
  if (less) return more ? 'concurrent' : 'before'
  return more ? 'after' : 'equal'
}

/** Counts by place, in the order of `nodes`. @throws BaseError `bad_input` for a node that is not among them */
export function toDense(nodes: readonly string[], counts: Counts): DenseCounts {
  for (const node in counts) {
    if (countOf(counts, node) > 0 && !nodes.includes(node))
      throw new BaseError('bad_input', `The node ${node} is not listed.`)
  }
  return nodes.map((node) => countOf(counts, node))
}

/** Counts by name, from those by place in the order of `nodes`. */
export function toSparse(nodes: readonly string[], counts: DenseCounts): Counts {
  const known = nodes.map((node, place) => [node, counts[place] ?? 0] as const)
  return Object.fromEntries(known.filter(([, count]) => count > 0))
}

/** LEB128: seven bits a byte, so that small counts take one byte, and five regions five. */
export function encodeDense(counts: DenseCounts): Uint8Array {
  const bytes: number[] = []
  for (const given of [counts.length, ...counts]) {
    let rest = safeCount('count', given)
    while (rest > 0x7f) {
      bytes.push((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    bytes.push(rest)
  }
  return Uint8Array.from(bytes)
}

/** Reads what `encodeDense` wrote. @throws BaseError `bad_input` where it is cut off or too long */
export function decodeDense(bytes: Uint8Array): DenseCounts {
  let at = 0
  function next(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[at++]
      if (byte === undefined) throw new BaseError('bad_input', 'The encoded clock is cut off.')
      value = safeCount('count', value + (byte & 0x7f) * scale)
      if (byte < 0x80) return value
    }
  }
  const length = next()
  if (length > MOST_NODES) throw tooMany()
  const counts = Array.from({ length }, next)
  if (at < bytes.length) throw new BaseError('bad_input', 'Something follows the encoded clock.')
  return counts
}

function checked(counts: Counts): Counts {
  const entries = Object.entries(counts)
  if (entries.length > MOST_NODES) throw tooMany()
  for (const [node, count] of entries) safeCount(`count of ${node}`, count)
  return Object.fromEntries(entries.filter(([, count]) => count > 0))
}

function tooMany(): BaseError {
  return new BaseError('bad_input', `A clock has at most ${MOST_NODES} nodes.`)
}
