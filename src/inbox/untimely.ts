import { limits } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import type { Execution } from '../ledger/present.ts'
import type { InboxWarning } from './events.ts'
import { park } from './failed.ts'
import type { Parts, Recorded } from './parts.ts'
import type { Delivery } from './read.ts'
import type { Receipt } from './receipt.ts'
import type { Turn } from './settle.ts'
import { NotItsTurn } from './settle.ts'
import { about } from './tell.ts'

/** Those close behind come soon; a line that has long been waiting is asked ever less often. */
const WAITED_SHARE = 1 / 4

/** The number of a key's first message. */
const FIRST = 1

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

/** The claim was given back because it was not the message's turn. */
export function untimelyIn(execution: Execution<Recorded>): NotItsTurn | null {
  const cause = execution.kind === 'refused' ? execution.error.cause : null
  return cause instanceof NotItsTurn ? cause : null
}

/** Who comes too late is kept for a person; who comes too early waits, but not for ever. */
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
  const waiting = await order.wait(place, expected, now)
  const waitedMs = waiting === null ? 0 : now - waiting.since
  // Whoever has handled a message of the line expects at least its second one.
  const begins = expected === FIRST && settings.ordered?.from === 'now'
  const holeMs = begins ? limits.inboxBeginMs : (settings.ordered?.holeMs ?? Number.POSITIVE_INFINITY)
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
