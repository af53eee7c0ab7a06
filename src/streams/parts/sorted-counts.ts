import type { Counts, Order } from './count.ts'
import { countOf } from './count.ts'

/**
 * Counts by node in the order of the names: two lists that are walked side by side, so that a comparison looks up no
 * name. Worth making for whatever is compared more than once.
 */
export class SortedCounts {
  readonly #nodes: readonly string[]
  readonly #counts: readonly number[]

  constructor(counts: Counts) {
    this.#nodes = Object.keys(counts)
      .filter((node) => countOf(counts, node) > 0)
      .sort()
    this.#counts = this.#nodes.map((node) => countOf(counts, node))
  }

  compare(other: SortedCounts): Order {
    const nodes = this.#nodes
    const counts = this.#counts
    const otherNodes = other.#nodes
    const otherCounts = other.#counts
    let at = 0
    let otherAt = 0
    let less = false
    let more = false
    while (at < nodes.length && otherAt < otherNodes.length) {
      const node = nodes[at] as string
      const otherNode = otherNodes[otherAt] as string
      if (node === otherNode) {
        const difference = (counts[at++] as number) - (otherCounts[otherAt++] as number)
        if (difference < 0) less = true
        else if (difference > 0) more = true
      } else if (node < otherNode) {
        // A node that stands in one clock only counts 0 in the other.
        at += 1
        more = true
      } else {
        otherAt += 1
        less = true
      }
      if (less && more) return 'concurrent'
    }
    if (at < nodes.length) more = true
    if (otherAt < otherNodes.length) less = true
    if (less) return more ? 'concurrent' : 'before'
    return more ? 'after' : 'equal'
  }
}
