import { isOnceError } from '../core/errors.ts'
import { boundedRetryMs } from '../core/retry.ts'
import type { Verdict } from '../core/verdict.ts'
import { isVerdict, released } from '../core/verdict.ts'
import { packFailure } from '../ledger/outcome.ts'
import type { TransactionWork } from '../ledger/transact.ts'
import type { OutboxMessage } from '../store/outbox.ts'
import type { SqlTx } from '../store/sql.ts'
import type { InboxEvent } from './events.ts'
import { inboxEffectKey, keyOf } from './key.ts'
import type { Place } from './order.ts'
import type { Intended, Parts, Recorded } from './parts.ts'
import { ANY_TENANT } from './parts.ts'
import type { IncomingMessage } from './port.ts'
import { isPostponed, postpone } from './postpone.ts'
import type { Delivery } from './read.ts'
import type { ParkReason, Settled } from './receipt.ts'

/** What the effect of a message is given. Everything it writes commits with the message's record, or not at all. */
export interface InboxTools<Tx> {
  readonly tx: Tx
  readonly outbox: { add(message: OutboxMessage): Promise<void> }
  /** Equal for every delivery of this message: other systems that are called under it act once. */
  readonly effectKey: string
  /** One key per system and step. */
  derive(name: string): string
  /** A permanent claim on a business value, owned by this message. */
  readonly unique: TransactionWork<Tx>['unique']
  /** Fires when the transaction ended under the effect: stop, whatever it does now is in vain. */
  readonly signal: AbortSignal
  readonly message: IncomingMessage
}

export type InboxEffect<Tx, B = unknown> = (body: B, tools: InboxTools<Tx>) => unknown

/** An earlier message of the key must come first. */
export class Waiting extends Error {
  readonly place: Place
  readonly expected: number

  constructor(place: Place, expected: number) {
    super(`Number ${place.sequence} waits for ${expected}.`)
    this.place = place
    this.expected = expected
  }
}

/** What the effect said of its own failure: rolled back like any other, but not judged by the ledger. */
export class EffectFailure extends Error {
  readonly error: unknown
  /** It will never succeed. */
  readonly final: boolean
  readonly retryAfterMs: number | null

  constructor({ verdict, error, retryAfterMs }: Verdict) {
    super('The effect refused the message.', { cause: error })
    this.error = error
    this.final = verdict === 'final'
    this.retryAfterMs = boundedRetryMs(retryAfterMs)
  }
}

/** What one call of `receive` has come to so far. */
export interface Turn {
  /** The dead letter that it runs for. */
  readonly redriven: string | null
  /** Its own effect was started, not that of a twin which it joined. */
  ran: boolean
  /** The delivery is counted as unfinished until it ends. */
  begun: boolean
  /** Told after the commit: before it nothing has happened. */
  notes: InboxEvent[]
}

/** The whole of one message, inside its transaction and under its claim. */
export async function settleMessage(
  parts: Parts,
  delivery: Delivery,
  effect: InboxEffect<SqlTx>,
  work: TransactionWork<SqlTx>,
  turn: Turn,
): Promise<Recorded> {
  const { tx } = work
  const { redriven } = turn
  turn.ran = true
  turn.notes = []
  const { message, content } = delivery
  const place = parts.settings.ordered === null ? null : parts.order.placeOf(message)
  // 1. Its turn: who comes too early goes back, who comes too late is kept for a person.
  const untimely = place === null || redriven !== null ? null : await untimelyAt(parts, delivery, place, tx, turn)
  if (untimely !== null) return await parkInside(parts, delivery, tx, { reason: untimely, failure: null, failures: 0 })
  // 2. What cannot be read keeps its place in the line, and never reaches the effect.
  if (content.kind === 'broken') {
    if (place !== null) await parts.order.advance(tx, place)
    const failure = packFailure(content.error).data
    return await parkInside(parts, delivery, tx, { reason: content.reason, failure, failures: 0 })
  }
  // 3. The same intent under another id.
  const done = await doneBefore(parts, message, content.body)
  if (done === null) await runEffect(parts, delivery, content.body, effect, work)
  // 4. The next of its key may come; the letter it was redriven from is gone with the commit.
  if (place !== null) await parts.order.advance(tx, place)
  if (redriven !== null) await parts.letters.remove(tx, redriven)
  return recorded(message, done === null ? { kind: 'handled' } : { kind: 'intent_done', by: done.id })
}

async function runEffect(
  { consumer }: Parts,
  { message, key }: Delivery,
  body: unknown,
  effect: InboxEffect<SqlTx>,
  { tx, outbox, unique, attempt }: TransactionWork<SqlTx>,
): Promise<void> {
  const { signal } = attempt
  const keyFor = (name?: string) => {
    signal.throwIfAborted()
    return inboxEffectKey(consumer, key, name)
  }
  try {
    await effect(body, {
      tx,
      outbox,
      unique,
      signal,
      message,
      get effectKey() {
        return keyFor()
      },
      derive: keyFor,
    })
  } catch (thrown) {
    if (isPostponed(thrown)) throw released(thrown)
    // Not as the ledger's own verdict: it would record the failure, and leave no way to redrive.
    throw isVerdict(thrown) && thrown.verdict !== 'released' ? new EffectFailure(thrown) : thrown
  }
}

async function untimelyAt(
  parts: Parts,
  { message }: Delivery,
  place: Place,
  tx: SqlTx,
  turn: Turn,
): Promise<'out_of_order' | 'hole' | null> {
  const { ordered } = parts.settings
  const { expected, waiting } = await parts.order.hold(tx, place)
  const { sequence } = place
  if (ordered === null || sequence === expected) return null
  if (sequence < expected) return 'out_of_order'
  if (waiting === null) throw released(new Waiting(place, expected))
  const waitedMs = (await parts.now()) - waiting.since
  // The first of those that wait goes first; should it have vanished too, any of them does.
  const mayPass = sequence === waiting.lowest ? waitedMs >= ordered.holeMs : waitedMs >= 2 * ordered.holeMs
  if (!mayPass) throw released(new Waiting(place, expected))
  const warning = { what: 'hole', key: message.key ?? '', expected, sequence, waitedMs } as const
  turn.notes.push({ kind: 'warning', consumer: parts.consumer, warning })
  return ordered.onHole === 'skip' ? null : 'hole'
}

/** The message that had the same intent, or null when this one is the first, and has it from now on. */
async function doneBefore(parts: Parts, message: IncomingMessage, body: unknown): Promise<Intended | null> {
  const intent = parts.options.intent?.(body, message) ?? null
  if (intent === null) return null
  const identity = { tenant: ANY_TENANT, caller: parts.consumer, key: keyOf(intent) }
  const { id, topic, deliveries } = message
  const execution = await parts.intents.execute(identity, null, (): Intended => ({ id, topic, delivery: deliveries }))
  switch (execution.kind) {
    case 'executed':
      return null
    case 'replayed':
    case 'joined':
      return execution.value
    case 'failed':
    case 'refused':
      throw released(postpone(execution.error))
  }
}

export interface Sentence {
  readonly reason: ParkReason
  /** Encoded. */
  readonly failure: string | null
  readonly failures: number
}

export async function parkInside(
  parts: Parts,
  { message, key }: Delivery,
  tx: SqlTx,
  sentence: Sentence,
): Promise<Recorded> {
  await parts.letters.put(tx, { ...sentence, letter: key, key, message, now: await parts.now() })
  return recorded(message, { kind: 'parked', reason: sentence.reason })
}

function recorded({ deliveries, topic }: IncomingMessage, settled: Settled): Recorded {
  return { settled, delivery: deliveries, topic }
}

/** How many causes are looked through: query builders and repositories wrap once or twice. */
const CAUSES = 5

/** A database that is away or busy says nothing about the message. */
export function isOutage(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    if (isOnceError(cause, 'store_unavailable') || isOnceError(cause, 'store_busy') || isOnceError(cause, 'stopped')) {
      return true
    }
  }
  return false
}
