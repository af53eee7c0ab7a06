import type { CausalArrival, CausalBufferOptions } from './causal.ts'
import { CausalBuffer } from './causal.ts'
import type { Counts } from './count.ts'

/** An entry of one region's log. Its context counts what its region had merged of every other log before it. */
export interface LogEntry<T> {
  readonly region: string
  /** Consecutive from 1 in its region's log. */
  readonly number: number
  readonly context: Counts
  /** Of the message, whatever region accepted it: a second copy is skipped everywhere. */
  readonly identity: string
  readonly message: T
}

export interface Merged<T> extends LogEntry<T> {
  /** A second copy of a message that a sender handed to two regions: counted in the log, never delivered. */
  readonly copy: boolean
}

export type RegionArrival<T> =
  | { readonly kind: 'delivered'; readonly entries: readonly Merged<T>[] }
  | Exclude<CausalArrival<T>, { kind: 'delivered' }>

/** Identities that are remembered for copies: those of the time in which a client may move between regions. */
const MOST_IDENTITIES = 200_000

/** Merges the logs of a few regions in causal order: a vector over regions, not over people. */
export class RegionMerge<T> {
  readonly #buffer: CausalBuffer<LogEntry<T>>
  readonly #identities = new Set<string>()

  constructor(options: Omit<CausalBufferOptions<LogEntry<T>>, 'delivered'> & { readonly merged?: Counts } = {}) {
    const { merged = {}, ...bounds } = options
    this.#buffer = new CausalBuffer({ ...bounds, delivered: merged })
  }

  /** How far each log is merged: the context of what is accepted next. */
  get merged(): Counts {
    return this.#buffer.delivered
  }

  get missing(): Counts {
    return this.#buffer.missing
  }

  receive(entry: LogEntry<T>): RegionArrival<T> {
    const clock = { ...entry.context, [entry.region]: entry.number }
    const arrival = this.#buffer.receive({ sender: entry.region, clock, message: entry })
    if (arrival.kind !== 'delivered') return arrival
    return { kind: 'delivered', entries: arrival.messages.map(({ message }) => this.#mark(message)) }
  }

  #mark(entry: LogEntry<T>): Merged<T> {
    const copy = this.#identities.has(entry.identity)
    if (!copy) {
      this.#identities.add(entry.identity)
      if (this.#identities.size > MOST_IDENTITIES) {
        for (const oldest of this.#identities) {
          this.#identities.delete(oldest)
          break
        }
      }
    }
    return { ...entry, copy }
  }
}
