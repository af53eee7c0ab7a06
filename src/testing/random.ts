/** A seeded source of chance: the same seed gives the same run, on every machine. */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** 32 hexadecimal digits. */
  id(): string
}

const WORD = 2 ** 32

/**
 * A source of chance for tests: small and fast, and the same for the same seed.
 *
 * @example
 * ```ts
 * import { createRandom } from 'onceonly/testing'
 *
 * const random = createRandom(7)
 * console.log(random.below(6), random.pick(['a', 'b']))
 * ```
 */
export function createRandom(seed: number): Random {
  // Small and well mixed (a counter through two multiplications and shifts); nothing here needs to be secret.
  let state = seed >>> 0
  const word = () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
  const next = () => word() / WORD
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (from) => {
      if (from.length === 0) throw new Error('nothing to pick from')
      return from[below(from.length)] as (typeof from)[number]
    },
    id: () => Array.from({ length: 4 }, () => word().toString(16).padStart(8, '0')).join(''),
  }
}
