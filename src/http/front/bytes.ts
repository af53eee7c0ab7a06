import { createHoldings, isFair } from './fair.ts'

/** Bytes of bodies that are held at once, shared between callers. */
export interface ByteBudget {
  hold(key: string): Hold
  readonly heldBytes: number
}

/** What one request holds. */
export interface Hold {
  /** From now on at least so many bytes are held, or nothing has changed. */
  cover(bytes: number): boolean
  /** Gives everything back; more calls change nothing. */
  release(): void
}

export interface ByteBudgetOptions {
  /** Of all callers together. */
  readonly totalBytes: number
  /** Of them, for one caller alone: from 0 to 1. */
  readonly share: number
}

/**
 * Bounds the bytes that requests hold at once, so that no caller takes them all.
 *
 * @example
 * ```ts
 * import { createByteBudget, frontLimits } from 'onceonly/http/limits'
 *
 * const budget = createByteBudget({ totalBytes: frontLimits.bodyBytes, share: frontLimits.bodyShare })
 * const hold = budget.hold('203.0.113.7')
 * if (!hold.cover(1_024)) console.log('answer 503')
 * hold.release()
 * ```
 */
export function createByteBudget({ totalBytes, share }: ByteBudgetOptions): ByteBudget {
  const holdings = createHoldings()
  return {
    hold(key) {
      let held = 0
      return {
        cover(bytes) {
          const more = bytes - held
          if (more <= 0) return true
          if (!isFair(share, holdings.of(key), totalBytes - holdings.total - more)) return false
          held = bytes
          holdings.add(key, more)
          return true
        },
        release() {
          if (held === 0) return
          holdings.add(key, -held)
          held = 0
        },
      }
    },
    get heldBytes() {
      return holdings.total
    },
  }
}
