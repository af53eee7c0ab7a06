import { BaseError } from '../../ledger/core/base-error.ts'
import type { Counts } from './count.ts'
import { countOf, safeCount } from './count.ts'

/**
 * A message and what its sender had delivered before it. `clock` counts *sends* only, its own included: a clock that
 * also ticks on receiving would break the test for "the next one of this sender".
 */
export interface Caused<T> {
  readonly sender: string
  readonly clock: Counts
  readonly message: T
}

export type CausalArrival<T> =
  | { readonly kind: 'delivered'; readonly messages: readonly Caused<T>[] }
  /** It waits for messages of these senders, up to these counts. */
  | { readonly kind: 'buffered'; readonly missing: Counts }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly missing: Counts }

/** Messages that wait: a cause that never comes must not fill the memory. */
const MOST_BUFFERED = 4_096

export interface CausalBufferOptions<T> {
  /** How many messages of each sender were delivered before. @default none */
  readonly delivered?: Counts
  /** How many messages may wait. @default 4 096 */
  readonly mostBuffered?: number
  /** How many bytes of them may wait, by `sizeOf`. @default only their number counts */
  readonly mostBufferedBytes?: number
  /** The bytes of a message. @default 0 */
  sizeOf?(message: T): number
}

interface Waiting<T> {
  readonly caused: Caused<T>
  readonly bytes: number
}

/**
 * Delivers a message only after everything that caused it. A waiting message is filed under one cause that it misses and
 * checked again when that cause comes, so that no delivery searches all waiting messages.
 */
export class CausalBuffer<T> {
  readonly #delivered = new Map<string, number>()
  readonly #waitingFor = new Map<string, Waiting<T>[]>()
  readonly #known = new Set<string>()
  readonly #mostBuffered: number
  readonly #mostBufferedBytes: number
  readonly #sizeOf: (message: T) => number
  #bufferedBytes = 0

  constructor(options: CausalBufferOptions<T> = {}) {
    this.#mostBuffered = options.mostBuffered ?? MOST_BUFFERED
    this.#mostBufferedBytes = options.mostBufferedBytes ?? Number.POSITIVE_INFINITY
    this.#sizeOf = options.sizeOf?.bind(options) ?? (() => 0)
    for (const [sender, count] of Object.entries(options.delivered ?? {})) {
      this.#delivered.set(sender, safeCount(`count of ${sender}`, count))
    }
  }

  /** How many messages of each sender were delivered: the context of the next send. */
  get delivered(): Counts {
    return Object.fromEntries(this.#delivered)
  }

  get buffered(): number {
    return this.#known.size
  }

  /** Of what waits, by `sizeOf`. */
  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  /** What the messages that wait are waiting for. */
  get missing(): Counts {
    const missing = new Map<string, number>()
    for (const place of this.#waitingFor.keys()) {
      const { sender, number } = readPlace(place)
      missing.set(sender, Math.max(missing.get(sender) ?? 0, number))
    }
    return Object.fromEntries(missing)
  }

  receive(caused: Caused<T>): CausalArrival<T> {
    const number = safeCount('count', countOf(caused.clock, caused.sender))
    if (number === 0) throw new BaseError('bad_input', `A message of ${caused.sender} does not count itself.`)
    for (const node in caused.clock) safeCount(`count of ${node}`, countOf(caused.clock, node))
    const own = placeOf(caused.sender, number)
    if (number <= this.#count(caused.sender) || this.#known.has(own)) return { kind: 'dropped' }
    const cause = this.#missingCause(caused)
    if (cause === null) return { kind: 'delivered', messages: this.#deliver(caused) }
    // Measured only now: most messages never wait.
    const bytes = safeCount('size', this.#sizeOf(caused.message))
    const isFull = this.#known.size >= this.#mostBuffered || this.#bufferedBytes + bytes > this.#mostBufferedBytes
    if (isFull) return { kind: 'refused', missing: this.#missingOf(caused) }
    this.#known.add(own)
    this.#bufferedBytes += bytes
    this.#file(cause, { caused, bytes })
    return { kind: 'buffered', missing: this.#missingOf(caused) }
  }

  #count(sender: string): number {
    return this.#delivered.get(sender) ?? 0
  }

  #deliver(first: Caused<T>): Caused<T>[] {
    const messages: Caused<T>[] = []
    const ready = [first]
    for (let next = ready.shift(); next !== undefined; next = ready.shift()) {
      const number = countOf(next.clock, next.sender)
      const own = placeOf(next.sender, number)
      this.#known.delete(own)
      this.#delivered.set(next.sender, number)
      messages.push(next)
      const woken = this.#waitingFor.get(own) ?? []
      this.#waitingFor.delete(own)
      for (const each of woken) {
        const cause = this.#missingCause(each.caused)
        if (cause !== null) {
          this.#file(cause, each)
          continue
        }
        this.#bufferedBytes -= each.bytes
        ready.push(each.caused)
      }
    }
    return messages
  }

  #file(cause: string, waiting: Waiting<T>): void {
    const filed = this.#waitingFor.get(cause)
    if (filed === undefined) this.#waitingFor.set(cause, [waiting])
    else filed.push(waiting)
  }

  /** The last message of one sender that must come first; null when nothing is missing. */
  #missingCause({ sender, clock }: Caused<T>): string | null {
    for (const node in clock) {
      const needed = node === sender ? countOf(clock, node) - 1 : countOf(clock, node)
      if (this.#count(node) < needed) return placeOf(node, needed)
    }
    return null
  }

  #missingOf({ sender, clock }: Caused<T>): Counts {
    const missing: [string, number][] = []
    for (const node in clock) {
      const needed = node === sender ? countOf(clock, node) - 1 : countOf(clock, node)
      if (this.#count(node) < needed) missing.push([node, needed])
    }
    return Object.fromEntries(missing)
  }
}

function placeOf(sender: string, number: number): string {
  return `${number} ${sender}`
}

function readPlace(place: string): { readonly sender: string; readonly number: number } {
  const space = place.indexOf(' ')
  return { number: Number(place.slice(0, space)), sender: place.slice(space + 1) }
}
