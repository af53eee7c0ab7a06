import { BaseError } from '../../ledger/core/base-error.ts'
import { safeCount } from './count.ts'

/** A time near the wall clock that never goes back: milliseconds, and a counter for what happens within one. */
export interface HybridTime {
  readonly ms: number
  readonly counter: number
}

/** A peer that is further ahead has a broken clock, and would move all other clocks ahead. */
const MOST_AHEAD_MS = 60_000

/** Times that follow the wall clock and never contradict what caused what, even where clocks are apart. */
export class HybridClock {
  readonly #wallMs: () => number
  readonly #mostAheadMs: number
  #last: HybridTime = { ms: 0, counter: 0 }

  constructor(wallMs: () => number, options: { readonly mostAheadMs?: number } = {}) {
    this.#wallMs = wallMs
    this.#mostAheadMs = options.mostAheadMs ?? MOST_AHEAD_MS
  }

  get last(): HybridTime {
    return this.#last
  }

  /** Something happened here; sending is something that happens. */
  send(): HybridTime {
    return this.#advance(this.#last)
  }

  receive(remote: HybridTime): HybridTime {
    safeCount('time', remote.ms)
    safeCount('counter', remote.counter)
    const aheadMs = remote.ms - this.#wallMs()
    if (aheadMs > this.#mostAheadMs) {
      throw new BaseError('bad_input', `A peer's clock is ${aheadMs} ms ahead; ${this.#mostAheadMs} ms are allowed.`)
    }
    return this.#advance(compareHybrid(remote, this.#last) > 0 ? remote : this.#last)
  }

  #advance(from: HybridTime): HybridTime {
    const ms = Math.floor(this.#wallMs())
    this.#last = ms > from.ms ? { ms, counter: 0 } : { ms: from.ms, counter: safeCount('counter', from.counter + 1) }
    return this.#last
  }
}

/** Negative when `a` is earlier, positive when it is later. */
export function compareHybrid(a: HybridTime, b: HybridTime): number {
  return a.ms - b.ms || a.counter - b.counter
}
