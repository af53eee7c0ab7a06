import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import { boundedRetryMs } from '../../ledger/core/retry.ts'
import type { Verdict } from '../../ledger/core/verdict.ts'
import { isVerdict, released } from '../../ledger/core/verdict.ts'
import type { TransactionContext } from '../../ledger/effect-context.ts'
import { sqlBehind } from '../../ledger/store/foreign.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { inboxEffectKey, keyOf } from './key.ts'
import type { Place } from './order.ts'
import type { Intended, Parts, Recorded } from './parts.ts'
import { ANY_TENANT } from './parts.ts'
import type { IncomingMessage } from './port.ts'
import { isPostponed, postpone } from './postpone.ts'
import type { Delivery } from './read.ts'
import type { ParkReason, Settled } from './receipt.ts'

/**
 * The context of every transaction effect, and the message. Its effect key is equal for every delivery of the message.
 */
export interface InboxContext<Tx> extends TransactionContext<Tx> {
  readonly message: IncomingMessage
}

export type InboxEffect<Tx, B = unknown> = (body: B, context: InboxContext<Tx>) => unknown

/** It is not the message's turn: an earlier one of its key must come first, or a later one was there already. */
export class NotItsTurn extends Error {
  readonly place: Place
  readonly expected: number

  constructor(place: Place, expected: number) {
    super(`Number ${place.sequence} came when ${expected} was expected.`)
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

/** The state of one call of `receive`. */
export interface Turn {
  /** The dead letter that it runs for. */
  readonly redriven: string | null
  body(): unknown
  /** Given up before it began, because it cannot be read. */
  readonly sentence: Sentence | null
  /** The number that it need not wait for any more. */
  passes: number | null
  /** Its own effect was started, not that of a twin which it joined. */
  ran: boolean
  /** The delivery is counted as unfinished until it ends. */
  begun: boolean
}

/** The whole of one message, inside its transaction and under its claim. */
export async function settleMessage(
  parts: Parts,
  delivery: Delivery,
  effect: InboxEffect<SqlTx>,
  work: TransactionContext<SqlTx>,
  turn: Turn,
): Promise<Recorded> {
  const tx = sqlBehind(work.tx)
  const { message } = delivery
  const { sentence } = turn
  turn.ran = true
  // 1. Its turn, in the line of its key. A redrive skips this check.
  const place = parts.settings.ordered === null ? null : parts.order.placeOf(message)
  if (place !== null && turn.redriven === null) await checkTurn(parts, place, tx, turn)
  // 2. What cannot be read keeps its place, and never reaches the effect.
  if (sentence !== null) {
    if (place !== null) await parts.order.advance(tx, place)
    return await parkInside(parts, delivery, tx, sentence)
  }
  // 3. The same intent under another id.
  const body = turn.body()
  const done = await doneBefore(parts, message, body)
  if (done === null) await runEffect(parts, delivery, body, effect, work)
  // 4. The next of its key may come. A dead letter that was redriven or freed goes with the commit, and not before: it
  // may
  // be
  // the last copy of the message.
  if (place !== null) await parts.order.advance(tx, place)
  await parts.letters.remove(tx, turn.redriven ?? delivery.key)
  return recorded(message, done === null ? { kind: 'handled' } : { kind: 'intent_done', by: done.id })
}

async function runEffect(
  { consumer, settings, runtime }: Parts,
  { message, key }: Delivery,
  body: unknown,
  effect: InboxEffect<SqlTx>,
  context: TransactionContext<SqlTx>,
): Promise<void> {
  const { signal } = context
  const given: InboxContext<SqlTx> = Object.assign(context, {
    message,
    effectKey: inboxEffectKey(consumer, key),
    derive(name: string) {
      signal.throwIfAborted()
      return inboxEffectKey(consumer, key, name)
    },
  })
  const { effectMs } = settings
  const late = Promise.withResolvers<never>()
  const timer = runtime.setTimer(
    effectMs,
    () =>
      late.reject(new OnceError('transaction_too_long', `The effect of ${consumer} took more than ${effectMs} ms.`)),
    true,
  )
  try {
    await Promise.race([effect(body, given), late.promise])
  } catch (thrown) {
    if (isPostponed(thrown)) throw released(thrown)
    // Not as the ledger's own verdict: it would record the failure, and leave no way to redrive.
    throw isVerdict(thrown) && thrown.verdict !== 'released' ? new EffectFailure(thrown) : thrown
  } finally {
    timer.cancel()
  }
}

async function checkTurn(parts: Parts, place: Place, tx: SqlTx, turn: Turn): Promise<void> {
  const { expected } = await parts.order.hold(tx, place)
  if (place.sequence === expected || (place.sequence > expected && turn.passes === expected)) return
  // What follows needs the clock, which needs a connection of its own: not while this transaction holds one.
  throw released(new NotItsTurn(place, expected))
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
  /** By the store's clock. */
  readonly now: number
}

export async function parkInside(
  parts: Parts,
  { message, key }: Delivery,
  tx: SqlTx,
  sentence: Sentence,
): Promise<Recorded> {
  await parts.letters.put(tx, { ...sentence, letter: key, key, message })
  return recorded(message, { kind: 'parked', reason: sentence.reason })
}

function recorded({ deliveries, topic }: IncomingMessage, settled: Settled): Recorded {
  return { settled, delivery: deliveries, topic }
}

/** How many causes are looked through: query builders and repositories wrap once or twice. */
const CAUSES = 5

/** A database that is down or busy says nothing about the message. */
export function isOutage(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    if (isOnceError(cause, 'store_unavailable') || isOnceError(cause, 'store_busy') || isOnceError(cause, 'stopped')) {
      return true
    }
  }
  return false
}
