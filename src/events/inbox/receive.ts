import { refuseInsideTransaction } from '../../ledger/context.ts'
import { limits } from '../../ledger/core/limits.ts'
import { redrivenHeaders } from '../../ledger/core/redriven.ts'
import { packFailure } from '../../ledger/outcome.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { failedReceipt, park } from './failed.ts'
import type { Parts } from './parts.ts'
import { identityOf } from './parts.ts'
import type { IncomingMessage } from './port.ts'
import type { Delivery } from './read.ts'
import { readDelivery } from './read.ts'
import type { Receipt } from './receipt.ts'
import { receiptOf } from './receipts.ts'
import type { InboxEffect, Turn } from './settle.ts'
import { settleMessage } from './settle.ts'
import { keepPlace, untimelyIn, untimelyReceipt } from './untimely.ts'

/** One delivery of a message: one transaction when all goes well. */
export async function receive(
  parts: Parts,
  message: IncomingMessage,
  effect: InboxEffect<SqlTx>,
  redriven: string | null,
): Promise<Receipt> {
  refuseInsideTransaction(parts.messages.name)
  const consumer = message.headers?.[redrivenHeaders.for] ?? parts.consumer
  if (consumer !== parts.consumer) return { kind: 'not_ours', id: message.id, consumer }
  const delivery = readDelivery(message, parts.options)
  const again = redriven === null && message.deliveries !== null && message.deliveries > 1
  let turn = newTurn(redriven)
  try {
    await parts.ready()
    turn = await turnOf(parts, delivery, redriven)
    const receipt = again ? await repeated(parts, delivery, effect, turn) : await attempt(parts, delivery, effect, turn)
    return await kept(parts, delivery, turn, receipt)
  } catch (error) {
    // Rolled back. Whose fault it was decides whether it counts.
    return await kept(parts, delivery, turn, await failedReceipt(parts, delivery, turn, error))
  } finally {
    if (turn.begun) await parts.failures.end(delivery.key)
  }
}

async function kept(parts: Parts, delivery: Delivery, turn: Turn, receipt: Receipt): Promise<Receipt> {
  if (receipt.kind === 'later') await keepPlace(parts, delivery, turn, receipt.delayMs)
  return receipt
}

function newTurn(redriven: string | null): Turn {
  return { redriven, body: () => null, sentence: null, passes: null, ran: false, begun: false }
}

async function turnOf(parts: Parts, { content }: Delivery, redriven: string | null): Promise<Turn> {
  const turn = newTurn(redriven)
  if (content.kind === 'read') return { ...turn, body: content.body }
  const failure = packFailure(content.error).data
  return { ...turn, sentence: { reason: content.reason, failure, failures: 0, now: await parts.now() } }
}

/**
 * A delivery that is not the first may be the one that kills its process: it is counted before it begins. Once one has
 * vanished so, the next is tried alone, so that messages which only happened to be there are not blamed with it.
 */
async function repeated(parts: Parts, delivery: Delivery, effect: InboxEffect<SqlTx>, turn: Turn): Promise<Receipt> {
  const { failures, settings } = parts
  const { message, key } = delivery
  const now = await parts.now()
  const trouble = await failures.get(key, now)
  if (trouble.retryAt > now) {
    const delayMs = Math.min(trouble.retryAt - now, settings.backoff.capMs)
    return { kind: 'later', id: message.id, delayMs, counted: false, error: null }
  }
  if (trouble.unfinished >= settings.maxUnfinished) {
    // Copies that came at once may still be alive, and all of them count: only silence shows that they have vanished.
    // One that began after the clock was read here has touched it in the future.
    const silentMs = Math.abs(now - trouble.touchedAt)
    if (silentMs < limits.inboxVanishedMs) {
      const delayMs = Math.min(limits.inboxVanishedMs - silentMs, settings.backoff.capMs)
      return { kind: 'later', id: message.id, delayMs, counted: false, error: null }
    }
    const text = `${trouble.unfinished} deliveries of this message ended without a word.`
    const failure = packFailure(new Error(text)).data
    return await park(parts, delivery, turn, { reason: 'never_finished', failure, failures: trouble.failures, now })
  }
  const run = async () => {
    await failures.begin(key, now)
    turn.begun = true
    return await attempt(parts, delivery, effect, turn)
  }
  return trouble.unfinished === 0 ? await run() : await parts.alone(run)
}

/** Claim, effect, outbox rows and outcome in one transaction. */
async function attempt(parts: Parts, delivery: Delivery, effect: InboxEffect<SqlTx>, turn: Turn): Promise<Receipt> {
  const identity = identityOf(parts, delivery.key)
  const execution = await parts.messages.execute(identity, delivery.fingerprint, (work) =>
    settleMessage(parts, delivery, effect, work, turn),
  )
  const untimely = untimelyIn(execution)
  if (untimely === null) return await receiptOf(parts, delivery, execution, turn)
  const word = await untimelyReceipt(parts, delivery, turn, untimely)
  if (word.kind !== 'pass') return word
  const { expected, warning } = word
  turn.passes = expected
  const receipt = await attempt(parts, delivery, effect, turn)
  if (receipt.kind === 'handled' && warning !== null) parts.emit({ kind: 'warning', consumer: parts.consumer, warning })
  return receipt
}
