import { OnceError } from '../../ledger/core/errors.ts'
import { MINUTE } from '../../ledger/core/limits.ts'

/** What a delivery came to. A duplicate has the first one's result. */
export interface Processed<R> {
  readonly result: R
  readonly duplicate: boolean
}

interface Remembered<R> {
  readonly result: Promise<R>
  readonly fingerprint: string | null
  /** By the clock that was given; infinite while it runs. */
  expiresAtMs: number
}

/** Long enough for a client that retries after a lost connection. */
const TTL_MS = 5 * MINUTE
/** Keys that are remembered at once; past it the oldest are forgotten early rather than the memory filled. */
const MOST_KEYS = 100_000
/** Expired keys that one arrival removes: clean-up is paid in small coins, and never falls behind. */
const SWEEP_KEYS = 4

/**
 * Remembers results by key, so that a second copy gets the first one's. Copies at the same time share one run; a run
 * that throws is forgotten. Results are settled in the order in which they expire, so that clean-up needs no search.
 */
export class ReceiveDedup<R> {
  readonly #known = new Map<string, Remembered<R>>()
  readonly #nowMs: () => number
  readonly #ttlMs: number
  readonly #mostKeys: number

  constructor(options: { readonly nowMs: () => number; readonly ttlMs?: number; readonly mostKeys?: number }) {
    this.#nowMs = options.nowMs
    this.#ttlMs = options.ttlMs ?? TTL_MS
    this.#mostKeys = options.mostKeys ?? MOST_KEYS
  }

  get size(): number {
    return this.#known.size
  }

  /** `fingerprint` tells another body under the same key: that is a `fork`, and neither is run again. */
  async process(key: string, effect: () => R | Promise<R>, fingerprint: string | null = null): Promise<Processed<R>> {
    const nowMs = this.#nowMs()
    this.#sweep(nowMs)
    const known = this.#known.get(key)
    if (known !== undefined && known.expiresAtMs > nowMs) {
      if (known.fingerprint !== fingerprint) throw fork(key)
      return { result: await known.result, duplicate: true }
    }
    const running = new Promise<R>((resolve) => resolve(effect()))
    const remembered: Remembered<R> = { result: running, fingerprint, expiresAtMs: Number.POSITIVE_INFINITY }
    this.#known.set(key, remembered)
    try {
      const result = await running
      // From its end, and to the end of the line, so that the oldest always come first.
      remembered.expiresAtMs = this.#nowMs() + this.#ttlMs
      if (this.#known.get(key) === remembered) {
        this.#known.delete(key)
        this.#known.set(key, remembered)
      }
      return { result, duplicate: false }
    } catch (error) {
      if (this.#known.get(key) === remembered) this.#known.delete(key)
      throw error
    }
  }

  #sweep(nowMs: number): void {
    let looked = 0
    for (const [key, { expiresAtMs }] of this.#known) {
      if (looked++ >= SWEEP_KEYS && this.#known.size <= this.#mostKeys) return
      // What runs is not forgotten, whatever the pressure: its copies would run beside it.
      if (expiresAtMs === Number.POSITIVE_INFINITY) continue
      if (expiresAtMs > nowMs && this.#known.size <= this.#mostKeys) return
      this.#known.delete(key)
    }
  }
}

/** One identity with two bodies: a clone of the sender, or a sender that forgot what it had sent. */
function fork(key: string): OnceError {
  return new OnceError('key_reused', `The message ${key} came with another body than before: a fork.`, {
    details: { fork: true, key },
  })
}
