import { isOnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import { backoffMs } from '../../ledger/core/retry.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { Execution } from '../../ledger/present.ts'
import { conflictLetter } from './dead-letters.ts'
import type { Parts, Recorded } from './parts.ts'
import { identityOf } from './parts.ts'
import type { IncomingMessage } from './port.ts'
import { isPostponed, type Postponed } from './postpone.ts'
import type { Delivery } from './read.ts'
import type { First, Receipt } from './receipt.ts'
import type { Sentence, Turn } from './settle.ts'

const OUTAGE = { baseMs: limits.inboxOutageBaseMs, capMs: limits.inboxOutageCapMs }

/** Turns the ledger's answer into a receipt, and notifies the listeners. */
export async function receiptOf(
  parts: Parts,
  delivery: Delivery,
  execution: Execution<Recorded>,
  turn: Turn,
): Promise<Receipt> {
  const { message } = delivery
  switch (execution.kind) {
    case 'executed': {
      const { settled } = execution.value
      if (settled.kind === 'intent_done') return await duplicate(parts, delivery, execution.value)
      if (settled.kind === 'parked') return parked(parts, message, turn.sentence ?? { ...settled, failure: null })
      parts.emit({ kind: 'handled', ...about(parts, message), delivery: message.deliveries })
      return { kind: 'handled', id: message.id }
    }
    case 'replayed':
    case 'joined':
      return await duplicate(parts, delivery, execution.value)
    case 'failed':
      return later(parts, delivery, execution.error)
    case 'refused': {
      const { error } = execution
      if (isOnceError(error, 'key_reused')) return await conflict(parts, delivery, error.details)
      if (isPostponed(error.cause)) return wished(parts, delivery, error.cause)
      return later(parts, delivery, error, error.retryAfterMs)
    }
  }
}

/** Duplicates are rare enough to be looked up, so that they can be explained. */
async function duplicate(parts: Parts, { message, key }: Delivery, recorded: Recorded): Promise<Receipt> {
  const by = recorded.settled.kind === 'intent_done' ? 'intent' : 'id'
  const view = await parts.ledger.get(identityOf(parts, key))
  const at = view !== null && 'settledAt' in view.record ? view.record.settledAt : null
  const first: First = { ...recorded, at }
  parts.emit({ kind: 'duplicate', ...about(parts, message), by, first })
  return { kind: 'duplicate', id: message.id, by, first }
}

/**
 * The first body stands. The other one may hold something that is nowhere else: it is kept and reported. A sender that
 * sends ever new bodies under one id must not fill the table, so that past a bound they are only reported.
 */
async function conflict(
  parts: Parts,
  { message, key }: Delivery,
  details: Readonly<Record<string, unknown>>,
): Promise<Receipt> {
  const [recorded, presented] = [String(details['recorded']), String(details['presented'])]
  const parking = { reason: 'conflict', failure: null, failures: 0, now: await parts.now() } as const
  const letter = conflictLetter(key, presented)
  const kept = (await parts.letters.countConflicts(key, letter)) < limits.inboxConflictLetters
  if (kept) await parts.letters.put(parts.store.sql, { ...parking, letter, key, message })
  parts.emit({ kind: 'conflict', ...about(parts, message), recorded, presented, kept })
  return { kind: 'conflict', id: message.id, recorded, presented }
}

export function parked(
  parts: Parts,
  message: IncomingMessage,
  { reason, failure }: Pick<Sentence, 'reason' | 'failure'>,
): Receipt {
  const known = failure === null ? null : unpackFailure(failure).failure
  parts.emit({ kind: 'parked', ...about(parts, message), reason, failure: known })
  return { kind: 'parked', id: message.id, reason, failure: known }
}

/** Put off, nothing counted. */
export function later(parts: Parts, delivery: Delivery, error: unknown, retryAfterMs: number | null = null): Receipt {
  return putOff(parts, delivery, { wished: false, error, delayMs: retryAfterMs })
}

/** Its own effect asked for it. The error is the reason that it gave, with one stack rather than two. */
function wished(parts: Parts, delivery: Delivery, postponed: Postponed): Receipt {
  const { cause, delayMs } = postponed
  return putOff(parts, delivery, { wished: true, error: cause instanceof Error ? cause : postponed, delayMs })
}

interface PutOff {
  readonly wished: boolean
  readonly error: unknown
  readonly delayMs: number | null
}

function putOff(parts: Parts, { message }: Delivery, { wished, error, delayMs: asked }: PutOff): Receipt {
  const delayMs = asked ?? backoffMs(message.deliveries ?? 1, OUTAGE, parts.runtime.random())
  const { deliveries: delivery } = message
  parts.emit({ kind: 'postponed', ...about(parts, message), wished, delivery, error, delayMs })
  return { kind: 'later', id: message.id, delayMs, counted: false, error }
}

export function about({ consumer }: Parts, { id, topic }: IncomingMessage) {
  return { consumer, id, topic }
}
