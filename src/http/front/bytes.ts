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
  readonly totalBytes: number
  /** Of them, for one caller alone; see `isFair`. */
  readonly share: number
}

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
