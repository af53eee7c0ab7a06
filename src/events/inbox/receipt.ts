import type { Failure } from '../../ledger/core/verdict.ts'
import type { Acknowledgement } from './port.ts'

/** What was recorded when a message was first settled. */
export type Settled =
  /** The effect ran, and committed with its record. */
  | { readonly kind: 'handled' }
  /** Another message had asked for the same before. */
  | { readonly kind: 'intent_done'; readonly by: string }
  /** It is among the dead letters. */
  | { readonly kind: 'parked'; readonly reason: ParkReason }

/** Why a message was given up. */
export type ParkReason =
  /** It failed as often as it may. */
  | 'failed'
  /** The effect said that it will never succeed. */
  | 'final'
  /** The processes that worked on it ended without a word, as often as they may. */
  | 'never_finished'
  | 'unreadable'
  /** It carries no id, so that copies of it could not be detected. */
  | 'no_id'
  /** It came after a later message of its key had been handled. */
  | 'out_of_order'
  /** The earlier messages of its key never came. */
  | 'hole'
  /** Its id was used before, with another body. */
  | 'conflict'

/** The first settling of a message, as a duplicate of it is explained. */
export interface First {
  readonly settled: Settled
  /** By the store's clock; null while the transaction that settled it is not visible here yet. */
  readonly at: number | null
  /** Which delivery it was, by the broker's count. */
  readonly delivery: number | null
  readonly topic: string
}

/** The result of one delivery. */
export type Receipt =
  | { readonly kind: 'handled'; readonly id: string }
  /** `by`: the same message came again, or another one with the same intent. */
  | { readonly kind: 'duplicate'; readonly id: string; readonly by: 'id' | 'intent'; readonly first: First }
  /** The same id with another body. The first one stands; others are kept among the dead letters, up to a bound. */
  | { readonly kind: 'conflict'; readonly id: string; readonly recorded: string; readonly presented: string }
  | { readonly kind: 'parked'; readonly id: string; readonly reason: ParkReason; readonly failure: Failure | null }
  /** Again, after a while. `counted` when it failed; an outage, or a twin that still runs, counts nothing. */
  | {
      readonly kind: 'later'
      readonly id: string
      readonly delayMs: number
      readonly counted: boolean
      readonly error: unknown
    }
  /** An earlier message of its key has not come yet. */
  | { readonly kind: 'waiting'; readonly id: string; readonly delayMs: number; readonly expected: number }
  /** It was redriven for another consumer of its topic, and is none of our business. */
  | { readonly kind: 'not_ours'; readonly id: string; readonly consumer: string }

/** The answer to the broker: only what is settled is acknowledged. */
export function acknowledgementOf(receipt: Receipt): Acknowledgement {
  switch (receipt.kind) {
    case 'handled':
    case 'duplicate':
    case 'conflict':
    case 'parked':
    case 'not_ours':
      return { kind: 'done' }
    case 'later':
    case 'waiting':
      return { kind: 'later', delayMs: receipt.delayMs }
  }
}
