import { BaseError } from '../../ledger/core/base-error.ts'
import { Ranges } from './ranges.ts'

/** Senders that are remembered at once: about a hundred bytes each. */
const MOST_SENDERS = 1_000_000
/** Holes that one sender may leave open; past it the sender is broken or hostile. */
const MOST_RANGES = 1_024

/** Copies by sender and number: exact, without a window, forever; a comparison for each message in order. */
export class SequenceDedup {
  readonly #senders = new Map<string, Ranges>()

  get senders(): number {
    return this.#senders.size
  }

  /** True for the first copy. */
  first(sender: string, number: number): boolean {
    const seen = this.#senders.get(sender) ?? this.#enter(sender)
    if (seen.has(number)) return false
    // Refused before it is remembered: nothing that was not taken may count as seen.
    if (seen.rangeCount >= MOST_RANGES && number > seen.floor) {
      throw new BaseError('bad_input', `${sender} left more than ${MOST_RANGES} holes in its numbers.`)
    }
    return seen.add(number)
  }

  /** What was seen of a sender, for an acknowledgement. */
  seen(sender: string): { readonly floor: number; readonly ranges: readonly (readonly [number, number])[] } {
    const seen = this.#senders.get(sender)
    return { floor: seen?.floor ?? 0, ranges: seen?.above ?? [] }
  }

  forget(sender: string): void {
    this.#senders.delete(sender)
  }

  #enter(sender: string): Ranges {
    if (this.#senders.size >= MOST_SENDERS) {
      throw new BaseError('store_busy', `More than ${MOST_SENDERS} senders are remembered.`, {
        next: 'Forget senders that have left, then try again.',
      })
    }
    const ranges = new Ranges()
    this.#senders.set(sender, ranges)
    return ranges
  }
}
