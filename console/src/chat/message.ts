import type { Entry, MessageIdentity } from 'onceonly/stream'
import type { Said } from './said.ts'

/**
 * `pending`: only its author has it. `accepted`: a region has it on disk. `final`: its place is the same for all.
 * `doubtful`: it left long ago, no region remembers whether it arrived, and it is not sent again by itself. `refused`: it
 * replies to what the room does not have, and was not sent.
 */
export type MessageState = 'pending' | 'accepted' | 'final' | 'doubtful' | 'refused'

/** Never changed: a message that changes is another object, so that drawn messages can be compared by identity. */
export interface Message extends Said {
  readonly id: string
  readonly identity: MessageIdentity
  readonly replyTo: string | null
  readonly state: MessageState
  /** Its place in the final order; null until it has one. */
  readonly final: number | null
  /** Its entry in the log, as soon as it was shown. */
  readonly entry: Entry | null
  /** The order in which it came to this page. */
  readonly arrival: number
  /** The order in which it was shown; null until a region has shown it. */
  readonly shown: number | null
}

/**
 * `missing`: this window was away for longer than messages are kept. `before`: the room is older than what it keeps.
 * `dropped`: this window has shown more than it holds.
 */
export interface Gap {
  readonly kind: 'missing' | 'before' | 'dropped'
  /** How many messages; second copies of a message that two regions took are counted, too. */
  readonly messages: number
  /** Everything with a smaller `shown` stands before it. */
  readonly after: number
}
