import { OnceError } from '../../ledger/core/errors.ts'
import { safeCount } from './count.ts'

/** What the receiver has: everything below the floor, and ranges above it. */
export interface Acknowledgement {
  readonly floor: number
  readonly ranges?: readonly (readonly [number, number])[]
}

export interface Pending<T> {
  /** Consecutive from 1; with the sender's name it is the message's key, the same however often it is sent. */
  readonly number: number
  readonly message: T
}

/** A place where pending messages survive a restart. A write counts before the message leaves. */
export interface PendingPlace<T> {
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
  readonly #place: PendingPlace<T> | null
  #turn: Promise<unknown> = Promise.resolve()
  #next: number
  /** Everything below it has been sent on this connection. */
  #sentBelow: number
  /** Bytes of each message that was sent on this connection and is not acknowledged. */
  readonly #sent = new Map<number, number>()
  #sentBytes = 0

  constructor(
    options: {
      readonly window?: number
      /** Past it only one message at a time is on its way. By `sizeOf`; left out, only their number counts. */
      readonly windowBytes?: number
      sizeOf?(message: T): number
      readonly mostPending?: number
      readonly place?: PendingPlace<T>
      /** What a restart found: the next number, and what was never acknowledged. */
      readonly restored?: { readonly next: number; readonly pending: readonly Pending<T>[] }
    } = {},
  ) {
    this.#window = options.window ?? WINDOW
    this.#windowBytes = options.windowBytes ?? Number.POSITIVE_INFINITY
    this.#sizeOf = options.sizeOf ?? (() => 0)
    this.#mostPending = options.mostPending ?? MOST_PENDING
    this.#place = options.place ?? null
    this.#next = safeCount('number', options.restored?.next ?? 1)
    for (const each of [...(options.restored?.pending ?? [])].sort((a, b) => a.number - b.number)) {
      this.#pending.set(each.number, each)
    }
    this.#sentBelow = this.#firstPending()
  }

  get pending(): readonly Pending<T>[] {
    return [...this.#pending.values()]
  }

  /** Accepts a message: from here on it will be sent until it is acknowledged. Durable first, where there is a place. */
  accept(message: T): Promise<Pending<T>> {
    // One after the other: a number whose write failed must be free for the next, or its hole stops the receiver.
    const mine = this.#turn.then(() => this.#acceptNow(message))
    this.#turn = mine.catch(() => {})
    return mine
  }

  async #acceptNow(message: T): Promise<Pending<T>> {
    if (this.#pending.size >= this.#mostPending) {
      throw new OnceError('store_busy', `${this.#mostPending} messages wait to be acknowledged.`)
    }
    const pending = { number: this.#next, message }
    await this.#place?.save(pending)
    this.#next += 1
    this.#pending.set(pending.number, pending)
    return pending
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
      const bytes = this.#sizeOf(pending.message)
      if (this.#sent.size > 0 && this.#sentBytes + bytes > this.#windowBytes) break
      this.#sent.set(number, bytes)
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
  async acknowledge({ floor, ranges = [] }: Acknowledgement): Promise<readonly number[]> {
    if (safeCount('floor', floor) > this.#next) {
      throw new OnceError('bad_input', `The number ${floor - 1} was acknowledged, but never sent.`)
    }
    const done: number[] = []
    for (const number of this.#pending.keys()) {
      if (number < floor || ranges.some(([from, to]) => from <= number && number <= to)) done.push(number)
    }
    for (const number of done) {
      this.#pending.delete(number)
      this.#sentBytes -= this.#sent.get(number) ?? 0
      this.#sent.delete(number)
    }
    if (done.length > 0) await this.#place?.remove(floor, ranges)
    return done
  }

  #firstPending(): number {
    // Insertion order is the order of the numbers.
    for (const number of this.#pending.keys()) return number
    return this.#next
  }
}
