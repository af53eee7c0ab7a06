import { BaseError } from '../../ledger/core/base-error.ts'
import { safeCount } from './count.ts'

/** The result of one arrival. */
export type Arrival<T> =
  /** In order now: it, and whatever waited for it. */
  | { readonly kind: 'delivered'; readonly messages: readonly T[] }
  /** Came before its turn, and is kept. */
  | { readonly kind: 'buffered'; readonly missing: Gap }
  /** Delivered before, or waiting already. */
  | { readonly kind: 'dropped' }
  /** Too far ahead to be kept: ask for it again when the gap is closed. */
  | { readonly kind: 'refused'; readonly missing: Gap }

/** The numbers that are missing before anything that waits can be delivered: from, up to and including. */
export interface Gap {
  readonly from: number
  readonly to: number
}

/** Messages that may wait: a peer that skips a number must not fill the memory. */
const MOST_BUFFERED = 1_024

/** Brings numbered messages of one sender into order: old ones dropped, early ones kept, gaps named. */
export class SequencedStream<T> {
  readonly #waiting = new Map<number, T>()
  readonly #mostBuffered: number
  #expected: number

  constructor(options: { readonly expected?: number; readonly mostBuffered?: number } = {}) {
    this.#expected = safeCount('number', options.expected ?? 0)
    this.#mostBuffered = options.mostBuffered ?? MOST_BUFFERED
    if (!(this.#mostBuffered > 0)) throw new BaseError('bad_option', '`mostBuffered` is at least 1.')
  }

  /** The number that comes next. */
  get expected(): number {
    return this.#expected
  }

  get buffered(): number {
    return this.#waiting.size
  }

  /** Null while nothing waits. */
  get gap(): Gap | null {
    if (this.#waiting.size === 0) return null
    let first = Number.POSITIVE_INFINITY
    for (const number of this.#waiting.keys()) if (number < first) first = number
    return { from: this.#expected, to: first - 1 }
  }

  receive(number: number, message: T): Arrival<T> {
    safeCount('number', number)
    if (number < this.#expected || this.#waiting.has(number)) return { kind: 'dropped' }
    if (number > this.#expected) return this.#keep(number, message)
    const messages = [message]
    this.#expected += 1
    for (let next = this.#take(); next !== undefined; next = this.#take()) messages.push(next.message)
    return { kind: 'delivered', messages }
  }

  #keep(number: number, message: T): Arrival<T> {
    if (this.#waiting.size >= this.#mostBuffered) {
      return { kind: 'refused', missing: { from: this.#expected, to: number } }
    }
    this.#waiting.set(number, message)
    return { kind: 'buffered', missing: this.gap ?? { from: this.#expected, to: number - 1 } }
  }

  #take(): { readonly message: T } | undefined {
    const message = this.#waiting.get(this.#expected)
    if (message === undefined && !this.#waiting.has(this.#expected)) return undefined
    this.#waiting.delete(this.#expected)
    this.#expected += 1
    return { message: message as T }
  }
}
