import { BaseError } from '../../ledger/core/base-error.ts'
import { safeCount } from './count.ts'

/** What the receiver has: everything below the floor, and ranges above it. */
export interface AcknowledgedRanges {
  readonly floor: number
  readonly ranges?: readonly (readonly [number, number])[]
}

export interface Pending<T> {
  /** Consecutive from 1; with the sender's name it is the message's key, the same however often it is sent. */
  readonly number: number
  readonly message: T
}

/** Where pending messages survive a restart. A write counts before the message leaves. */
export interface PendingStorage<T> {
  save(pending: Pending<T>): Promise<void>
  remove(below: number, ranges: readonly (readonly [number, number])[]): Promise<void>
}

/** Sent and not acknowledged: more would only wait in the network. */
const WINDOW = 64
/** Accepted and not acknowledged: past it the caller must wait. */
const MOST_PENDING = 10_000

/** Numbers messages, keeps them until they are acknowledged, and says what to send: now, and again after a reconnect. */
export class IdempotentSender<T> {
  readonly #pending = new Map<number, Pending<T>>()
  readonly #window: number
  readonly #windowBytes: number
  readonly #sizeOf: (message: T) => number
  readonly #mostPending: number
  readonly #mostPendingBytes: number
  readonly #storage: PendingStorage<T> | null
  #turn: Promise<unknown> = Promise.resolve()
  #next: number
  /** Everything below it has been sent on this connection. */
  #sentBelow: number
  /** Bytes of each message that is pending; measured once, however often it is sent. */
  readonly #sizes = new Map<number, number>()
  #pendingBytes = 0
  /** Those that were sent on this connection. */
  readonly #sent = new Set<number>()
  #sentBytes = 0

  constructor(
    options: {
      readonly window?: number
      /** Past it only one message at a time is on its way. By `sizeOf`; left out, only their number counts. */
      readonly windowBytes?: number
      sizeOf?(message: T): number
      readonly mostPending?: number
      /** By `sizeOf`; left out, only their number counts. */
      readonly mostPendingBytes?: number
      readonly storage?: PendingStorage<T>
      /** What a restart found: the next number, and what was never acknowledged. */
      readonly restored?: { readonly next: number; readonly pending: readonly Pending<T>[] }
    } = {},
  ) {
    this.#window = options.window ?? WINDOW
    this.#windowBytes = options.windowBytes ?? Number.POSITIVE_INFINITY
    this.#sizeOf = options.sizeOf ?? (() => 0)
    this.#mostPending = options.mostPending ?? MOST_PENDING
    this.#mostPendingBytes = options.mostPendingBytes ?? Number.POSITIVE_INFINITY
    this.#storage = options.storage ?? null
    this.#next = safeCount('number', options.restored?.next ?? 1)
    for (const each of [...(options.restored?.pending ?? [])].sort((a, b) => a.number - b.number)) {
      this.#keep(each, this.#sizeOf(each.message))
    }
    this.#sentBelow = this.#firstPending()
  }

  get pending(): readonly Pending<T>[] {
    return [...this.#pending.values()]
  }

  /** Accepts a message: from here on it will be sent until it is acknowledged. Durable first, where there is storage. */
  accept(message: T): Promise<Pending<T>> {
    // One after the other: a number whose write failed must be free for the next, or its hole stops the receiver.
    const mine = this.#turn.then(() => this.#acceptNow(message))
    this.#turn = mine.catch(() => {})
    return mine
  }

  async #acceptNow(message: T): Promise<Pending<T>> {
    const bytes = this.#sizeOf(message)
    if (this.#pending.size >= this.#mostPending || this.#pendingBytes + bytes > this.#mostPendingBytes) {
      throw new BaseError('store_busy', `${this.#pending.size} messages wait to be acknowledged.`, {
        next: 'Send again when some are acknowledged.',
      })
    }
    const pending = { number: this.#next, message }
    await this.#storage?.save(pending)
    this.#next += 1
    this.#keep(pending, bytes)
    return pending
  }

  #keep(pending: Pending<T>, bytes: number): void {
    this.#pending.set(pending.number, pending)
    this.#sizes.set(pending.number, bytes)
    this.#pendingBytes += bytes
  }

  /** What may leave now, in order, within the window. Calling it counts as sending. */
  toSend(): readonly Pending<T>[] {
    const first = this.#firstPending()
    const below = Math.min(this.#next, first + this.#window)
    const out: Pending<T>[] = []
    let number = Math.max(first, this.#sentBelow)
    for (; number < below; number++) {
      const pending = this.#pending.get(number)
      if (pending === undefined) continue
      const bytes = this.#sizes.get(number) ?? 0
      if (this.#sent.size > 0 && this.#sentBytes + bytes > this.#windowBytes) break
      this.#sent.add(number)
      this.#sentBytes += bytes
      out.push(pending)
    }
    this.#sentBelow = number
    return out
  }

  /** A new connection: whatever is pending is to be sent again, with the same numbers. */
  reconnected(): void {
    this.#sentBelow = this.#firstPending()
    this.#sent.clear()
    this.#sentBytes = 0
  }

  /** True for who is acknowledged by it for the first time. */
  async acknowledge({ floor, ranges = [] }: AcknowledgedRanges): Promise<readonly number[]> {
    if (safeCount('floor', floor) > this.#next) {
      throw new BaseError('bad_input', `The number ${floor - 1} was acknowledged, but never sent.`)
    }
    const done: number[] = []
    for (const number of this.#pending.keys()) {
      if (number < floor || ranges.some(([from, to]) => from <= number && number <= to)) done.push(number)
    }
    for (const number of done) {
      const bytes = this.#sizes.get(number) ?? 0
      this.#pending.delete(number)
      this.#sizes.delete(number)
      this.#pendingBytes -= bytes
      if (this.#sent.delete(number)) this.#sentBytes -= bytes
    }
    if (done.length > 0) await this.#storage?.remove(floor, ranges)
    return done
  }

  #firstPending(): number {
    // Insertion order is the order of the numbers.
    for (const number of this.#pending.keys()) return number
    return this.#next
  }
}
