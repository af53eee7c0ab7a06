import { BaseError } from '../../ledger/core/base-error.ts'
import { MINUTE } from '../../ledger/core/limits.ts'
import { PartError } from './errors.ts'

/** The result of a delivery. A duplicate has the first one's result. */
export interface Processed<R> {
  readonly result: R
  readonly duplicate: boolean
}

export interface ReceiveDedupOptions {
  /** A clock in milliseconds. */
  readonly nowMs: () => number
  /** How long a result is remembered, in milliseconds. @default 5 minutes */
  readonly ttlMs?: number
  /** Keys that are remembered at once, running ones included. @default 100 000 */
  readonly mostKeys?: number
  /**
   * With this callback a full table forgets its oldest result instead of refusing a new key. It gets the forgotten key; a
   * later duplicate of that key runs again. @default none
   */
  onEvict?(key: string): void
}

interface Running<R> {
  readonly result: Promise<R>
  readonly fingerprint: string | null
}

interface Settled<R> {
  readonly result: R
  readonly fingerprint: string | null
  /** By the clock that was given. */
  readonly expiresAtMs: number
}

/** Long enough for a client that retries after a lost connection. */
const TTL_MS = 5 * MINUTE
/** Keys that are remembered at once, running ones included: a few hundred bytes each. */
const MOST_KEYS = 100_000
/** Expired keys that one arrival removes: clean-up is paid in small coins, and never falls behind. */
const SWEEP_KEYS = 4

/**
 * Remembers results by key, so that a second copy gets the first one's. Copies at the same time share one run; a run
 * that throws is forgotten. With as many keys as may be remembered, a new one is refused with `dedup_full`: a key that
 * made room for it before its time would let a duplicate through.
 *
 * @example
 * ```ts
 * import { ReceiveDedup } from 'onceonly/stream/parts'
 *
 * const dedup = new ReceiveDedup<string>({ nowMs: Date.now })
 * const { result, duplicate } = await dedup.process('message-1', () => 'stored')
 * ```
 */
export class ReceiveDedup<R> {
  /** Apart from the settled ones, so that an effect that never ends blocks no eviction. */
  readonly #running = new Map<string, Running<R>>()
  /** In the order in which they expire, so that clean-up needs no search. */
  readonly #settled = new Map<string, Settled<R>>()
  readonly #nowMs: () => number
  readonly #ttlMs: number
  readonly #mostKeys: number
  readonly #onEvict: ((key: string) => void) | null
  /** What the clock that was given said last, and by how much it was set back in all. */
  #lastMs = Number.NEGATIVE_INFINITY
  #setBackMs = 0

  constructor(options: ReceiveDedupOptions) {
    this.#nowMs = options.nowMs
    this.#ttlMs = positive('ttlMs', options.ttlMs ?? TTL_MS)
    this.#mostKeys = positive('mostKeys', options.mostKeys ?? MOST_KEYS)
    this.#onEvict = options.onEvict?.bind(options) ?? null
  }

  get size(): number {
    return this.#running.size + this.#settled.size
  }

  /** A different `fingerprint` under the same key is a `fork`: neither body is run again. */
  async process(key: string, effect: () => R | Promise<R>, fingerprint: string | null = null): Promise<Processed<R>> {
    const nowMs = this.#timeMs()
    this.#sweep(nowMs)
    const known = this.#running.get(key) ?? this.#unexpired(key, nowMs)
    if (known !== undefined) {
      if (known.fingerprint !== fingerprint) throw fork(key)
      return { result: await known.result, duplicate: true }
    }
    if (this.size >= this.#mostKeys) this.#makeRoom(nowMs)
    return { result: await this.#run(key, effect, fingerprint), duplicate: false }
  }

  async #run(key: string, effect: () => R | Promise<R>, fingerprint: string | null): Promise<R> {
    const { promise, resolve } = Promise.withResolvers<R>()
    // Before it runs: a copy may come while it does, in the same turn.
    this.#running.set(key, { result: promise, fingerprint })
    try {
      resolve(new Promise<R>((settle) => settle(effect())))
      const result = await promise
      // From its end, and to the end of the line, so that the oldest always come first.
      this.#settled.set(key, { result, fingerprint, expiresAtMs: this.#timeMs() + this.#ttlMs })
      return result
    } finally {
      this.#running.delete(key)
    }
  }

  /**
   * Stays at the latest time seen when the clock is set back; otherwise older entries would not expire until the clock
   * caught up.
   */
  #timeMs(): number {
    const nowMs = this.#nowMs()
    if (nowMs < this.#lastMs) this.#setBackMs += this.#lastMs - nowMs
    this.#lastMs = nowMs
    return nowMs + this.#setBackMs
  }

  #unexpired(key: string, nowMs: number): Settled<R> | undefined {
    const settled = this.#settled.get(key)
    if (settled === undefined || settled.expiresAtMs > nowMs) return settled
    // Its next result belongs at the end of the line.
    this.#settled.delete(key)
    return undefined
  }

  #sweep(nowMs: number): void {
    let looked = 0
    for (const [key, { expiresAtMs }] of this.#settled) {
      if (expiresAtMs > nowMs || (looked++ >= SWEEP_KEYS && this.size < this.#mostKeys)) return
      this.#settled.delete(key)
    }
  }

  #makeRoom(nowMs: number): void {
    for (const [key, { expiresAtMs }] of this.#settled) {
      if (this.#onEvict === null) throw full(this.#mostKeys, expiresAtMs - nowMs)
      this.#settled.delete(key)
      return this.#onEvict(key)
    }
    throw full(this.#mostKeys, this.#ttlMs)
  }
}

function positive(option: string, value: number): number {
  if (value > 0) return value
  throw new BaseError('bad_option', `\`${option}\` is ${String(value)}; it must be a number above 0.`)
}

function full(mostKeys: number, retryAfterMs: number): BaseError {
  return new PartError('dedup_full', `${mostKeys} keys are remembered, and none has expired.`, {
    retryAfterMs,
    details: { mostKeys },
  })
}

/** One identity with two bodies: a clone of the sender, or a sender that forgot what it had sent. */
function fork(key: string): BaseError {
  return new BaseError('key_reused', `The message ${key} came with another body than before: a fork.`, {
    details: { fork: true, key },
  })
}
