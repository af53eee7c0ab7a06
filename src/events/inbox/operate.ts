import { decodeValue } from '../../ledger/core/codec.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { Page, RecordView } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { InboxDeadLetter, InboxDeadLetterFilter } from './dead-letters.ts'
import { rowsOf } from './dead-letters.ts'
import { keyOf } from './key.ts'
import type { Parts, Recorded } from './parts.ts'
import { identityOf } from './parts.ts'
import type { First, Receipt } from './receipt.ts'
import { receive } from './receive.ts'
import type { InboxEffect } from './settle.ts'

/** Everything that is known about one message. */
export interface MessageExplanation {
  readonly id: string
  /** How it was settled; null when it was not, or is forgotten. */
  readonly first: First | null
  /** Copies that came after it. Written behind: the last seconds may be missing. */
  readonly duplicates: number
  readonly conflicts: number
  readonly failures: number
  readonly unfinished: number
  readonly lastFailure: Failure | null
  /** By the store's clock. */
  readonly lastFailedAt: number | null
  readonly deadLetter: InboxDeadLetter | null
}

/** What a redrive or a purge would do, or did, with one dead letter. */
export interface Redriven {
  readonly letter: string
  readonly id: string
  readonly topic: string
  readonly reason: InboxDeadLetter['reason']
  readonly result: /** Nothing was done yet: this is a preview. */
    | { readonly kind: 'preview' }
    /** A copy was handled after all: the dead letter was only removed. */
    | { readonly kind: 'handled_before' }
    /** The first body under its id was handled: this one can only be purged, or sent again under another id. */
    | { readonly kind: 'conflict' }
    /** It runs when it is delivered again. The dead letter stays until such a delivery has settled it. */
    | { readonly kind: 'freed' }
    | { readonly kind: 'ran'; readonly receipt: Receipt }
}

export interface RedriveOptions<Tx> {
  /** Only reports what would be done. @default false */
  readonly preview?: boolean
  /**
   * Runs the messages now. Without it the effect runs that consumes their topic in this process; where there is none, the
   * messages are freed: each runs when it is delivered again, and its dead letter stays until then.
   * @default the effect that consumes the topic here
   */
  readonly effect?: InboxEffect<Tx>
  /** The most dead letters of one call. @default one page */
  readonly limit?: number
  /** The operator, as the history should name them. @default not recorded */
  readonly by?: string
}

/** The dead letters of the inbox, for operators. */
export interface InboxDeadLetters<Tx> {
  list(
    filter?: InboxDeadLetterFilter,
    page?: { readonly limit?: number; readonly cursor?: string | null },
  ): Promise<Page<InboxDeadLetter>>
  count(filter?: InboxDeadLetterFilter): Promise<number>
  /**
   * Oldest first, as many as one page holds. What fails again becomes a new dead letter behind the others: repeat the
   * call to continue.
   */
  redrive(filter: InboxDeadLetterFilter, options?: RedriveOptions<Tx>): Promise<readonly Redriven[]>
  /** Removes dead letters for good. Copies of their messages stay duplicates until the window ends. */
  purge(
    filter: InboxDeadLetterFilter,
    options?: { readonly preview?: boolean; readonly by?: string; readonly limit?: number },
  ): Promise<readonly InboxDeadLetter[]>
}

const ANONYMOUS = 'operator'

/** What consumes a topic in this process; undefined when nothing does. */
type EffectFor = (topic: string) => InboxEffect<SqlTx> | undefined

export function createDeadLetters(parts: Parts, effectFor: EffectFor): InboxDeadLetters<SqlTx> {
  const { letters, store } = parts
  return {
    async list(filter = {}, { limit, cursor = null } = {}) {
      await parts.ready()
      return await letters.list(filter, { limit: rowsOf(limit), cursor })
    },
    async count(filter = {}) {
      await parts.ready()
      return await letters.count(filter)
    },
    async redrive(filter, { preview = false, effect, limit, by = ANONYMOUS } = {}) {
      await parts.ready()
      const rows = await letters.oldest(filter, rowsOf(limit))
      const done: Redriven[] = []
      for (const row of rows) {
        const { letter, reason, message } = row
        const run = effect ?? effectFor(message.topic) ?? null
        const result = preview ? ({ kind: 'preview' } as const) : await redriveOne(parts, row, run, by)
        done.push({ letter, id: message.id, topic: message.topic, reason, result })
      }
      return done
    },
    async purge(filter, { preview = false, by = ANONYMOUS, limit } = {}) {
      await parts.ready()
      const rows = await letters.oldest(filter, rowsOf(limit))
      if (preview) return rows
      for (const { letter } of rows) await letters.remove(store.sql, letter)
      if (rows.length > 0) parts.emit({ kind: 'purged', consumer: parts.consumer, letters: rows.length, by })
      return rows
    },
  }
}

/**
 * The dead letter is removed in the transaction that settles the message: it may be the last copy of it. The record is forgotten only while it says
 * "parked", under its fence, so that a copy which was handled meanwhile is never run a second time.
 */
async function redriveOne(
  parts: Parts,
  { letter, message, reason }: InboxDeadLetter,
  effect: InboxEffect<SqlTx> | null,
  by: string,
): Promise<Redriven['result']> {
  const { ledger, letters, failures, store, consumer } = parts
  const key = keyOf(message.id)
  const identity = identityOf(parts, key)
  const view = await ledger.get(identity)
  const before = recordedIn(view)
  if (before !== null && before.settled.kind !== 'parked') {
    if (reason === 'conflict') return { kind: 'conflict' }
    await letters.remove(store.sql, letter)
    return { kind: 'handled_before' }
  }
  try {
    if (view !== null) await ledger.forget(identity, { by, ifFence: view.record.fence })
  } catch (error) {
    if (!isOnceError(error, 'not_found')) throw error
  }
  await failures.forget(key)
  parts.emit({ kind: 'redriven', consumer, id: message.id, topic: message.topic, by })
  if (effect === null) return { kind: 'freed' }
  return { kind: 'ran', receipt: await receive(parts, message, effect, letter) }
}

function recordedIn(view: RecordView | null): Recorded | null {
  if (view === null || view.record.state !== 'succeeded' || view.record.outcome.data === null) return null
  return decodeValue(view.record.outcome.data) as Recorded
}

export async function explain(parts: Parts, messageId: string): Promise<MessageExplanation> {
  await parts.ready()
  const key = keyOf(messageId)
  const now = await parts.now()
  const [view, trouble, { rows }] = await Promise.all([
    parts.ledger.get(identityOf(parts, key)),
    parts.failures.get(key, now),
    parts.letters.list({ letters: [key] }, { limit: 1, cursor: null }),
  ])
  const recorded = recordedIn(view)
  const failure = trouble.failure
  const at = view !== null && 'settledAt' in view.record ? view.record.settledAt : null
  return {
    id: messageId,
    first: recorded === null ? null : { ...recorded, at },
    duplicates: view?.replays ?? 0,
    conflicts: view?.conflicts ?? 0,
    failures: trouble.failures,
    unfinished: trouble.unfinished,
    lastFailure: failure === null ? null : unpackFailure(failure).failure,
    lastFailedAt: trouble.failedAt,
    deadLetter: rows[0] ?? null,
  }
}
