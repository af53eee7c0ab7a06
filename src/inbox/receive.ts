import { isOnceError } from '../core/errors.ts'
import { MINUTE, SECOND } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import type { Failure } from '../core/verdict.ts'
import { refuseInsideTransaction } from '../ledger/context.ts'
import { packFailure, unpackFailure } from '../ledger/outcome.ts'
import type { Execution } from '../ledger/present.ts'
import type { SqlTx } from '../store/sql.ts'
import { conflictLetter } from './dead-letters.ts'
import type { Parts, Recorded } from './parts.ts'
import { identityOf } from './parts.ts'
import type { IncomingMessage } from './port.ts'
import { isPostponed } from './postpone.ts'
import type { Delivery } from './read.ts'
import { readDelivery } from './read.ts'
import type { First, Receipt } from './receipt.ts'
import type { InboxEffect, Sentence, Turn } from './settle.ts'
import { EffectFailure, isOutage, parkInside, settleMessage, Waiting } from './settle.ts'

/** An outage ends sooner or later; until then nobody is helped by asking more often than once a minute. */
const OUTAGE = { baseMs: 1 * SECOND, capMs: 1 * MINUTE }
/** The missing message is usually close behind. */
const HOLE = { baseMs: 100, capMs: 5 * SECOND }

/** One delivery of a message: at most one transaction when all goes well. */
export async function receive(
  parts: Parts,
  message: IncomingMessage,
  effect: InboxEffect<SqlTx>,
  redriven: string | null,
): Promise<Receipt> {
  refuseInsideTransaction(parts.messages.name)
  const delivery = readDelivery(message, parts.options)
  const turn: Turn = { redriven, ran: false, begun: false, notes: [] }
  try {
    await parts.ready()
    // 1. A delivery that is not the first may be the one that kills its process: it is counted before it begins.
    const early = redriven === null ? await beginAgain(parts, delivery, turn) : null
    if (early !== null) return early
    // 2. Claim, effect, outbox rows and outcome in one transaction.
    const execution = await parts.messages.execute(identityOf(parts, delivery.key), delivery.fingerprint, (work) =>
      settleMessage(parts, delivery, effect, work, turn),
    )
    for (const note of turn.notes) parts.emit(note)
    return await receiptOf(parts, delivery, execution, turn)
  } catch (error) {
    // 3. Rolled back. Whose fault it was decides whether it counts.
    return await failedReceipt(parts, delivery, turn, error)
  }
}

async function beginAgain(parts: Parts, delivery: Delivery, turn: Turn): Promise<Receipt | null> {
  const { failures, settings, runtime } = parts
  const { deliveries } = delivery.message
  if (deliveries === null || deliveries <= 1) return null
  const now = await parts.now()
  const trouble = await failures.begin(delivery.key, now)
  if (trouble.retryAt > now) {
    const delayMs = Math.min(trouble.retryAt - now, settings.backoff.capMs)
    return { kind: 'later', id: delivery.message.id, delayMs, counted: false, error: null }
  }
  turn.begun = true
  if (trouble.unfinished <= settings.maxUnfinished) return null
  const text = `${trouble.unfinished - 1} deliveries of this message ended without a word.`
  const failure = packFailure(new Error(text)).data
  return await park(
    parts,
    delivery,
    turn,
    { reason: 'never_finished', failure, failures: trouble.failures },
    runtime.random(),
  )
}

async function receiptOf(
  parts: Parts,
  delivery: Delivery,
  execution: Execution<Recorded>,
  turn: Turn,
): Promise<Receipt> {
  const { message } = delivery
  const { id, deliveries } = message
  switch (execution.kind) {
    case 'executed': {
      const { settled } = execution.value
      if (settled.kind === 'handled') {
        parts.emit({ kind: 'handled', ...about(parts, message), delivery: deliveries })
        return { kind: 'handled', id }
      }
      if (settled.kind === 'intent_done') return await duplicate(parts, delivery, execution.value)
      return parked(parts, message, { reason: settled.reason, failure: null, failures: 0 })
    }
    case 'replayed':
    case 'joined':
      return await duplicate(parts, delivery, execution.value)
    case 'failed':
      return await failedReceipt(parts, delivery, turn, execution.error)
    case 'refused': {
      const { error } = execution
      if (isOnceError(error, 'key_reused')) return await conflict(parts, delivery, error.details)
      if (error.cause instanceof Waiting) return await waiting(parts, delivery, turn, error.cause)
      const wished = isPostponed(error.cause) ? error.cause.delayMs : error.retryAfterMs
      return await later(parts, delivery, turn, isPostponed(error.cause) ? error.cause : error, wished)
    }
  }
}

/** Duplicates are rare enough to be looked up, so that they can be explained. */
async function duplicate(parts: Parts, delivery: Delivery, value: Recorded): Promise<Receipt> {
  const { message, key } = delivery
  const { settled } = value
  const by = settled.kind === 'intent_done' ? 'intent' : 'id'
  const view = await parts.ledger.get(identityOf(parts, key))
  const at = view !== null && 'settledAt' in view.record ? view.record.settledAt : null
  const first: First = { settled, at, delivery: value.delivery, topic: value.topic }
  parts.emit({ kind: 'duplicate', ...about(parts, message), by, first })
  return { kind: 'duplicate', id: message.id, by, first }
}

/** The first body stands. The other one may hold something that nobody else has: it is kept, and a person told. */
async function conflict(
  parts: Parts,
  { message, key }: Delivery,
  details: Readonly<Record<string, unknown>>,
): Promise<Receipt> {
  const [recorded, presented] = [String(details['recorded']), String(details['presented'])]
  const now = await parts.now()
  const letter = conflictLetter(key, presented)
  await parts.letters.put(parts.store.sql, {
    letter,
    key,
    message,
    reason: 'conflict',
    failure: null,
    failures: 0,
    now,
  })
  parts.emit({ kind: 'conflict', ...about(parts, message), recorded, presented })
  return { kind: 'conflict', id: message.id, recorded, presented }
}

async function waiting(parts: Parts, delivery: Delivery, turn: Turn, wait: Waiting): Promise<Receipt> {
  const { message, key } = delivery
  const { place, expected } = wait
  await parts.order.wait(place, expected, await parts.now())
  if (turn.begun) await parts.failures.end(key)
  const delayMs = backoffMs(message.deliveries ?? 1, HOLE, parts.runtime.random())
  parts.emit({ kind: 'waiting', ...about(parts, message), expected, sequence: place.sequence })
  return { kind: 'waiting', id: message.id, delayMs, expected }
}

/** Put off, nothing counted. */
async function later(
  parts: Parts,
  { message, key }: Delivery,
  turn: Turn,
  error: unknown,
  wishedMs: number | null = null,
): Promise<Receipt> {
  if (turn.begun) await parts.failures.end(key)
  const delayMs = wishedMs ?? backoffMs(message.deliveries ?? 1, OUTAGE, parts.runtime.random())
  parts.emit({ kind: 'postponed', ...about(parts, message), error, delayMs })
  return { kind: 'later', id: message.id, delayMs, counted: false, error }
}

async function failedReceipt(parts: Parts, delivery: Delivery, turn: Turn, error: unknown): Promise<Receipt> {
  if (isOutage(error)) return await later(parts, delivery, turn, error)
  // A twin's effect failed, or never began: whoever ran it counts. What is wrong with the inbox itself is thrown.
  if (!turn.ran) {
    if (isOnceError(error) && !error.retryable) throw error
    return await later(parts, delivery, turn, error)
  }
  try {
    return await countFailure(parts, delivery, turn, error)
  } catch (fault) {
    if (!isOutage(fault)) throw fault
    return await later(parts, delivery, turn, fault)
  }
}

async function countFailure(parts: Parts, delivery: Delivery, turn: Turn, thrown: unknown): Promise<Receipt> {
  const { failures, settings, runtime, order } = parts
  const { message, key } = delivery
  const told = thrown instanceof EffectFailure ? thrown : null
  const error = told === null ? thrown : told.error
  const failure = packFailure(error).data
  const now = await parts.now()
  const count = await failures.count(key, { failure, now, begun: turn.begun })
  turn.begun = false
  const chance = runtime.random()
  if (told?.final === true || count >= settings.maxFailures) {
    const reason = told?.final === true ? 'final' : 'failed'
    return await park(parts, delivery, turn, { reason, failure, failures: count }, chance)
  }
  const delayMs = told?.retryAfterMs ?? backoffMs(count, settings.backoff, chance)
  await failures.delay(key, now + delayMs)
  const place = settings.ordered === null ? null : order.placeOf(message)
  if (place !== null) await order.seen(place)
  parts.emit({ kind: 'failed', ...about(parts, message), failures: count, error, retryAfterMs: delayMs })
  return { kind: 'later', id: message.id, delayMs, counted: true, error }
}

/**
 * Gives the message up: under its own claim, in a transaction of its own, so that a copy which was handled meanwhile wins,
 * and every later copy is a duplicate of a parked message.
 */
async function park(
  parts: Parts,
  delivery: Delivery,
  turn: Turn,
  sentence: Sentence,
  chance: number,
): Promise<Receipt> {
  const { message, key, fingerprint } = delivery
  const { order, settings } = parts
  const place = settings.ordered === null ? null : order.placeOf(message)
  const execution = await parts.messages.execute(identityOf(parts, key), fingerprint, async ({ tx }) => {
    // The line goes on without it, unless it was not its turn yet.
    if (place !== null && (await order.hold(tx, place)).expected === place.sequence) await order.advance(tx, place)
    return await parkInside(parts, delivery, tx, sentence)
  })
  if (execution.kind === 'executed') return parked(parts, message, sentence)
  if (execution.kind !== 'refused') return await receiptOf(parts, delivery, execution, turn)
  if (isOnceError(execution.error, 'key_reused')) return await receiptOf(parts, delivery, execution, turn)
  return await later(parts, delivery, turn, execution.error, backoffMs(1, OUTAGE, chance))
}

function parked(parts: Parts, message: IncomingMessage, { reason, failure }: Sentence): Receipt {
  const known: Failure | null = failure === null ? null : unpackFailure(failure).failure
  parts.emit({ kind: 'parked', ...about(parts, message), reason, failure: known })
  return { kind: 'parked', id: message.id, reason, failure: known }
}

function about({ consumer }: Parts, { id, topic }: IncomingMessage) {
  return { consumer, id, topic }
}
