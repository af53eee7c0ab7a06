/**
 * Whether a holder may have more of something that is scarce: what it has already must be within its share of what is left
 * afterwards. One holder alone gets `share` of everything, two get less each, and a new holder always finds some.
 * No holder has a setting of its own, and nothing is ever taken back from one.
 *
 * @param share of everything, for one holder alone: over 0, up to 1
 */
export function isFair(share: number, held: number, leftAfter: number): boolean {
  return leftAfter >= 0 && held * (1 - share) <= share * leftAfter
}

/** How much each key holds. Keys that hold nothing take no memory. */
export interface Holdings {
  readonly total: number
  /** How many keys hold something. */
  readonly keys: number
  of(key: string): number
  add(key: string, amount: number): void
}

export function createHoldings(): Holdings {
  const held = new Map<string, number>()
  let total = 0
  return {
    get total() {
      return total
    },
    get keys() {
      return held.size
    },
    of: (key) => held.get(key) ?? 0,
    add(key, amount) {
      const now = (held.get(key) ?? 0) + amount
      total += amount
      if (now === 0) held.delete(key)
      else held.set(key, now)
    },
  }
}
