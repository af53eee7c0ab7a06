import { isOnceError } from '../../ledger/core/errors.ts'
import { backoffMs } from '../../ledger/core/retry.ts'
import { released } from '../../ledger/core/verdict.ts'
import { packFailure } from '../../ledger/outcome.ts'
import { sqlBehind } from '../../ledger/store/foreign.ts'
import type { Parts } from './parts.ts'
import { identityOf } from './parts.ts'
import { postpone } from './postpone.ts'
import type { Delivery } from './read.ts'
import type { Receipt } from './receipt.ts'
import { about, later, parked, receiptOf } from './receipts.ts'
import type { Sentence, Turn } from './settle.ts'
import { EffectFailure, isOutage, parkInside } from './settle.ts'

/** The transaction was rolled back. The message is to blame only if its own effect failed by itself. */
export async function failedReceipt(parts: Parts, delivery: Delivery, turn: Turn, error: unknown): Promise<Receipt> {
  if (isOutage(error)) return later(parts, delivery, error)
  if (!turn.ran) {
    // A concurrent copy's effect failed: the process that ran it counts the failure. Errors of the inbox itself are
    // thrown.
    if (isOnceError(error) && !error.retryable) throw error
    return later(parts, delivery, error)
  }
  try {
    return await countFailure(parts, delivery, turn, error)
  } catch (fault) {
    if (!isOutage(fault)) throw fault
    return later(parts, delivery, fault)
  }
}

async function countFailure(parts: Parts, delivery: Delivery, turn: Turn, thrown: unknown): Promise<Receipt> {
  const { failures, settings, runtime } = parts
  const { message, key } = delivery
  const wrapped = thrown instanceof EffectFailure ? thrown : null
  const error = wrapped === null ? thrown : wrapped.error
  const failure = packFailure(error).data
  const now = await parts.now()
  const count = await failures.count(key, { failure, now, begun: turn.begun })
  turn.begun = false
  if (wrapped?.final === true || count >= settings.maxFailures) {
    const reason = wrapped?.final === true ? 'final' : 'failed'
    return await park(parts, delivery, turn, { reason, failure, failures: count, now })
  }
  const delayMs = wrapped?.retryAfterMs ?? backoffMs(count, settings.backoff, runtime.random())
  await failures.delay(key, now + delayMs)
  parts.emit({ kind: 'failed', ...about(parts, message), failures: count, error, retryAfterMs: delayMs })
  return { kind: 'later', id: message.id, delayMs, counted: true, error }
}

/**
 * Gives the message up: under its own claim, in a transaction of its own, so that a copy which was handled meanwhile wins,
 * and every later copy is a duplicate of a parked message.
 */
export async function park(parts: Parts, delivery: Delivery, turn: Turn, sentence: Sentence): Promise<Receipt> {
  const { message, key, fingerprint } = delivery
  const { order, settings } = parts
  const place = settings.ordered === null ? null : order.placeOf(message)
  const execution = await parts.messages.execute(identityOf(parts, key), fingerprint, async (context) => {
    const tx = sqlBehind(context.tx)
    const itsTurn = place !== null && (await order.hold(tx, place)).expected === place.sequence
    if (itsTurn && sentence.reason === 'hole') throw released(postpone('The missing messages came after all.'))
    // The following messages of the key continue without it.
    if (itsTurn) await order.advance(tx, place)
    return await parkInside(parts, delivery, tx, sentence)
  })
  return execution.kind === 'executed'
    ? parked(parts, message, sentence)
    : await receiptOf(parts, delivery, execution, turn)
}
