import type { RecordId } from '../../ledger/core/identity.ts'
import type { HistoryEvent } from './event.ts'
import { findOrder } from './find-order.ts'

export interface HistoryOptions {
  /** How many half-made orders of one identity are tried before the search gives up. @default 200 000 */
  readonly tries?: number
}

export type HistoryVerdict =
  | { readonly fits: true; readonly identities: number; readonly events: number }
  | {
      readonly fits: false
      readonly identities: number
      readonly events: number
      readonly problems: readonly Problem[]
    }

/** An identity whose history no order explains. */
export interface Problem {
  readonly id: RecordId
  /** `undecided`: there were more orders than the search was allowed to try. */
  readonly why: 'impossible' | 'undecided'
  /** The longest part that an order does explain, and what stood next in the way of it. */
  readonly explained: readonly HistoryEvent[]
  readonly stuck: readonly HistoryEvent[]
}

const TRIES = 200_000

/**
 * Decides for every identity whether the answers that several processes got fit `transition`: whether there is one order of
 * their calls in which nothing comes before what had ended when it began, and in which the machine gives every answer that
 * was given. Calls that failed are left out, and calls whose answer was lost may have happened or not.
 */
export function checkHistory(events: readonly HistoryEvent[], { tries = TRIES }: HistoryOptions = {}): HistoryVerdict {
  const byId = Map.groupBy(
    events.filter(({ result }) => result.kind !== 'fail'),
    ({ request }) => request.id,
  )
  const problems: Problem[] = []
  for (const [id, own] of byId) {
    const found = findOrder(own, tries)
    if (found.kind !== 'fits') problems.push({ id, why: found.kind, explained: found.explained, stuck: found.stuck })
  }
  const size = { identities: byId.size, events: events.length }
  return problems.length === 0 ? { fits: true, ...size } : { fits: false, ...size, problems }
}
