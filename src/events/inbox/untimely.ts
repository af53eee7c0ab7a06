import { limits } from '../../ledger/core/limits.ts'
import { backoffMs } from '../../ledger/core/retry.ts'
import type { Execution } from '../../ledger/present.ts'
import type { InboxWarning } from './events.ts'
import { park } from './failed.ts'
import { FIRST } from './order.ts'
import type { Parts, Recorded } from './parts.ts'
import type { Delivery } from './read.ts'
import type { Receipt } from './receipt.ts'
import { about } from './receipts.ts'
import type { Turn } from './settle.ts'
import { NotItsTurn } from './settle.ts'

/** Those close behind come soon; a line that has long been waiting is asked ever less often. */
const WAITED_SHARE = 1 / 4

/** A hole counts only after several checks of the line, however long they took. */
const LOOKED_SHARE = 1 / 4

function delayOf(distance: number, waitedMs: number, chance: number): number {
  const { inboxWaitBaseMs: baseMs, inboxWaitCapMs: capMs } = limits
  return backoffMs(1, { baseMs: Math.max(distance * baseMs, waitedMs * WAITED_SHARE), capMs }, chance)
}

/** It need not wait any longer for the number before it, which never came, or was never meant for this consumer. */
interface Pass {
  readonly kind: 'pass'
  readonly expected: number
  /** Null where a line only begins. */
  readonly warning: Extract<InboxWarning, { what: 'hole' }> | null
}

/** An inbox that has handled a message of the line expects at least its second one. */
function isBeginning({ settings }: Parts, expected: number): boolean {
  return expected === FIRST && settings.ordered?.from === 'now'
}

/** How long the first of those that wait does so. */
function holeMsOf(parts: Parts, expected: number): number {
  return isBeginning(parts, expected) ? limits.inboxBeginMs : (parts.settings.ordered?.holeMs ?? limits.longestMs)
}

/**
 * The message comes again later, because it asked for it or failed. Those behind it then wait for a known message, not for
 * a hole. If this write fails, they wait as long as for a hole.
 */
export async function keepPlace(parts: Parts, { message }: Delivery, turn: Turn, delayMs: number): Promise<void> {
  const place = parts.settings.ordered === null || turn.redriven !== null ? null : parts.order.placeOf(message)
  if (place === null) return
  const expected = turn.passes
  const passed = expected === null ? null : { expected, waitedMs: holeMsOf(parts, expected) }
  await parts.order.putOff(place, { delayMs: Math.ceil(delayMs), passed }).catch(() => {})
}

/** The claim was given back because it was not the message's turn. */
export function untimelyIn(execution: Execution<Recorded>): NotItsTurn | null {
  const cause = execution.kind === 'refused' ? execution.error.cause : null
  return cause instanceof NotItsTurn ? cause : null
}

/** A message that comes too late is parked for an operator; one that comes too early waits for a bounded time. */
export async function untimelyReceipt(
  parts: Parts,
  delivery: Delivery,
  turn: Turn,
  { place, expected }: NotItsTurn,
): Promise<Receipt | Pass> {
  const { settings, order, runtime, consumer } = parts
  const { message } = delivery
  const { sequence } = place
  const now = await parts.now()
  const giveUp = (reason: 'out_of_order' | 'hole') =>
    park(parts, delivery, turn, { reason, failure: null, failures: 0, now })
  if (sequence < expected) return await giveUp('out_of_order')
  const holeMs = holeMsOf(parts, expected)
  const begins = isBeginning(parts, expected)
  const mostMs = Math.max(limits.inboxLookMs, Math.floor(holeMs * LOOKED_SHARE))
  const waiting = await order.wait(place, { expected, now, mostMs })
  const waitedMs = waiting === null ? 0 : now - waiting.since
  // The first of those that wait goes first; should it have vanished too, any of them does.
  if (waiting !== null && waitedMs >= (sequence === waiting.lowest ? holeMs : 2 * holeMs)) {
    if (begins) return { kind: 'pass', expected, warning: null }
    const warning = { what: 'hole', key: message.key ?? '', expected, sequence, waitedMs } as const
    if (settings.ordered?.onHole === 'skip') return { kind: 'pass', expected, warning }
    parts.emit({ kind: 'warning', consumer, warning })
    return await giveUp('hole')
  }
  parts.emit({ kind: 'waiting', ...about(parts, message), expected, sequence })
  const delayMs = delayOf(begins ? 1 : sequence - expected, waitedMs, runtime.random())
  return { kind: 'waiting', id: message.id, delayMs, expected }
}
