import { exceedsBytes } from '../../ledger/core/identity.ts'
import { defaults, limits } from '../../ledger/core/limits.ts'
import { badOption, wholeOption } from '../../ledger/core/option-names.ts'
import type { Backoff } from '../../ledger/core/retry.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { InboxListener } from './events.ts'
import type { IncomingMessage } from './port.ts'

export interface InboxOptions<Tx> {
  /** On SQLite or PostgreSQL: records and business writes commit together. */
  readonly ledger: Ledger<Tx>
  /** The consumer's name: a message is handled once per consumer. Changing it forgets what was handled. */
  readonly consumer: string
  /**
   * For how long a handled message is remembered; at least as long as the broker may hand it over again.
   * @default 7 days
   */
  readonly windowMs?: number
  /**
   * From the text of a body; JSON, when left out. What it throws parks the message as unreadable.
   * @default JSON.parse
   */
  readonly parse?: (text: string, message: IncomingMessage) => unknown
  /**
   * What of a body makes it the same message; all of it, when left out. Leave out what changes from copy to copy.
   * @default the whole body
   */
  readonly fingerprint?: (body: unknown, message: IncomingMessage) => unknown
  /**
   * A second key, by what the message asks for: two ids with one intent are handled once. Null for none.
   * @default none
   */
  readonly intent?: (body: unknown, message: IncomingMessage) => string | null
  /**
   * Handles the messages of a key by their numbers, also when the broker hands them over in another order. An outbox
   * counts per key over all topics, so such a consumer takes every topic of its keys. Messages of two outboxes under one
   * key are two lines. Costs a small permanent row per key and outbox.
   * @default false
   */
  readonly ordered?: boolean | OrderedOptions
  /**
   * How long the effect may take, 25 s when left out and 30 s at most: then its transaction is rolled back and the message
   * has failed. On SQLite a transaction ends after 5 s in any case.
   * @default 25_000
   */
  readonly effectMs?: number
  /** How often a message may fail before it is parked. @default 10 */
  readonly maxFailures?: number
  /** How many deliveries may vanish with their process before the message is parked. @default 5 */
  readonly maxUnfinished?: number
  /** Pauses before a failed message is delivered again, in milliseconds. @default { baseMs: 1_000, capMs: 300_000 } */
  readonly backoff?: Partial<Backoff>
  /** Called with every event: handled, duplicate, failed and parked messages. @default none */
  readonly on?: InboxListener
  /** Sweeps by itself; on by default. @default true */
  readonly background?: boolean
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

/** Every option by its name. */
export const inboxOptions = {
  ledger: true,
  consumer: true,
  windowMs: true,
  parse: true,
  fingerprint: true,
  intent: true,
  ordered: true,
  effectMs: true,
  maxFailures: true,
  maxUnfinished: true,
  backoff: true,
  on: true,
  background: true,
  runtime: true,
} satisfies Record<keyof InboxOptions<SqlTx>, true>

export interface OrderedOptions {
  /**
   * Where the line of a key begins that this consumer has never handled: with number 1, or with the lowest number that
   * comes within a few seconds. A consumer that is added later than its keys never gets their first messages, and would
   * wait `holeMs` for them. Of what comes later still, below that number, nothing is lost: it is parked.
   * @default 'beginning'
   */
  readonly from?: 'beginning' | 'now'
  /** How long a later message waits for a number that does not come. @default 5 minutes */
  readonly holeMs?: number
  /**
   * Then: continue without it, and park it should it still come; or park what waits, and keep the line closed.
   * @default 'skip'
   */
  readonly onHole?: 'skip' | 'park'
}

export interface Settings {
  readonly windowMs: number
  readonly effectMs: number
  readonly maxFailures: number
  readonly maxUnfinished: number
  readonly backoff: Backoff
  readonly ordered: Required<OrderedOptions> | null
}

export function settingsOf<Tx>(options: InboxOptions<Tx>): Settings {
  const { consumer, ordered = false } = options
  if (typeof consumer !== 'string' || consumer.trim() === '') bad('consumer', 'must be a non-blank string')
  if (exceedsBytes(consumer, limits.consumerNameBytes))
    bad('consumer', `is longer than ${limits.consumerNameBytes} bytes`)
  const { baseMs = defaults.inboxRetryBaseMs, capMs = defaults.inboxRetryCapMs } = options.backoff ?? {}
  return {
    windowMs: whole('windowMs', options.windowMs ?? defaults.inboxWindowMs, limits.longestMs),
    effectMs: whole('effectMs', options.effectMs ?? defaults.inboxEffectMs, defaults.leaseMs),
    maxFailures: whole('maxFailures', options.maxFailures ?? defaults.inboxFailures),
    maxUnfinished: whole('maxUnfinished', options.maxUnfinished ?? defaults.inboxUnfinished),
    backoff: {
      baseMs: whole('backoff.baseMs', baseMs, limits.longestMs),
      capMs: whole('backoff.capMs', capMs, limits.longestMs),
    },
    ordered: ordered === false ? null : orderedOf(ordered === true ? {} : ordered),
  }
}

function orderedOf(given: OrderedOptions): Required<OrderedOptions> {
  const { from = 'beginning', holeMs = defaults.inboxHoleMs, onHole = 'skip' } = given
  if (from !== 'beginning' && from !== 'now') bad('ordered.from', "must be 'beginning' or 'now'")
  if (onHole !== 'skip' && onHole !== 'park') bad('ordered.onHole', "must be 'skip' or 'park'")
  return { holeMs: whole('ordered.holeMs', holeMs, limits.longestMs), onHole, from }
}

function bad(option: string, what: string): never {
  return badOption('Inbox', option, what)
}

function whole(option: string, value: number, most?: number): number {
  return wholeOption('Inbox', option, value, 1, most)
}
