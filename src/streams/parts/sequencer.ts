import { BaseError } from '../../ledger/core/base-error.ts'
import { safeCount } from './count.ts'

/** A place in the one order of a room. A later epoch is a later sequencer; its places come after all of the earlier. */
export interface Place {
  readonly epoch: number
  readonly place: number
}

/** Assigns one total order until a sequencer with a later epoch takes over. */
export class Sequencer {
  readonly epoch: number
  #next: number
  #fencedBy: number | null = null

  constructor(options: { readonly epoch: number; readonly next?: number }) {
    this.epoch = safeCount('epoch', options.epoch)
    this.#next = safeCount('place', options.next ?? 0)
  }

  next(): Place {
    if (this.#fencedBy !== null) {
      throw new BaseError(
        'lease_lost',
        `The sequencer of epoch ${this.epoch} was replaced by epoch ${this.#fencedBy}.`,
        {},
        { retryable: false, applied: 'maybe', next: 'Stop using this one.' },
      )
    }
    return { epoch: this.epoch, place: this.#next++ }
  }

  /** A sequencer with this epoch is active: older ones must stop. */
  fence(epoch: number): void {
    if (safeCount('epoch', epoch) > this.epoch) this.#fencedBy = Math.max(this.#fencedBy ?? 0, epoch)
  }
}

/** Negative when `a` comes before `b`, positive when it comes after. */
export function comparePlaces(a: Place, b: Place): number {
  return a.epoch - b.epoch || a.place - b.place
}

/** Takes places in order, and none of a sequencer that was replaced. */
export class SequencedReader {
  #epoch = 0
  #expected = 0

  /** `next`: take it. `old`: it was taken, or its sequencer was replaced. `early`: something before it is missing. */
  look({ epoch, place }: Place): 'next' | 'old' | 'early' {
    if (epoch < this.#epoch || (epoch === this.#epoch && place < this.#expected)) return 'old'
    return place === this.#expected ? 'next' : 'early'
  }

  take(at: Place): void {
    if (this.look(at) !== 'next') throw new BaseError('bad_input', 'The place must be the next one.')
    this.#epoch = at.epoch
    this.#expected = at.place + 1
  }
}
