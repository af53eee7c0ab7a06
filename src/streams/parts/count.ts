import { BaseError } from '../../ledger/core/base-error.ts'

/** Counts by node; a node that is missing counts 0. */
export type Counts = Readonly<Record<string, number>>

/** How two clocks stand to each other. Equal clocks are equal, not concurrent. */
export type Order = 'before' | 'after' | 'equal' | 'concurrent'

/** Counters come from peers: one that is no count would poison every comparison after it. */
export function safeCount(what: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new BaseError('bad_input', `The ${what} ${String(value)} is not a whole number from 0 on.`)
}

/** Names come from peers, too: one like `constructor` finds nothing that it did not bring itself. */
export function countOf(counts: Counts, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] as number) : 0
}
