import type { Fence } from '../../ledger/core/identity.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import { transition } from '../../ledger/core/transition.ts'
import { fenceIn, sameAnswer } from './answer.ts'
import type { HistoryEvent } from './event.ts'

export type Order =
  | { readonly kind: 'fits' }
  | {
      readonly kind: 'impossible' | 'undecided'
      readonly explained: readonly HistoryEvent[]
      readonly stuck: readonly HistoryEvent[]
    }

/** A half-made order: what has been placed so far, and the record that it led to. */
interface Prefix {
  readonly placed: readonly HistoryEvent[]
  /** In order of their beginnings. */
  readonly left: readonly HistoryEvent[]
  readonly record: LedgerRecord | null
  readonly fence: number
  readonly now: number
}

/** A depth-first search that never looks twice at the same rest with the same record. */
export function findOrder(events: readonly HistoryEvent[], tries: number): Order {
  const left = events.toSorted((a, b) => a.startedAt - b.startedAt)
  const search = createSearch(left)
  const stack: Prefix[] = [search.settleReads({ placed: [], left, record: null, fence: 0, now: 0 })]
  const seen = new Set<string>()
  const number = new Map(left.map((event, index) => [event, index]))
  let longest = stack[0] as Prefix
  for (let tried = 0; tried < tries; tried++) {
    const prefix = stack.pop()
    if (prefix === undefined) return { kind: 'impossible', explained: longest.placed, stuck: candidates(longest) }
    if (prefix.left.every(({ result }) => result.kind === 'info')) return { kind: 'fits' }
    if (prefix.placed.length > longest.placed.length) longest = prefix
    const key = `${prefix.left.map((event) => number.get(event)).join()} ${JSON.stringify(prefix.record)}`
    if (seen.has(key)) continue
    seen.add(key)
    // The likeliest comes last, because the last is taken first: calls mostly happen in the order in which they began.
    for (const event of candidates(prefix).toReversed())
      stack.push(...search.place(prefix, event).map(search.settleReads))
  }
  return { kind: 'undecided', explained: longest.placed, stuck: candidates(longest) }
}

/** What may come next: everything that began before the first of the others had ended. */
function candidates({ left }: Prefix): HistoryEvent[] {
  const firstEnd = left.reduce((least, { result, endedAt }) => {
    return result.kind === 'ok' ? Math.min(least, endedAt) : least
  }, Number.POSITIVE_INFINITY)
  return left.filter(({ startedAt }) => startedAt <= firstEnd)
}

/** Fences of refusals, releases and operators are not visible; they lie between those that are. */
const BETWEEN = 0.5

function createSearch(events: readonly HistoryEvent[]) {
  // A grant whose answer was lost shows when its claim is repeated, and in what its holder writes.
  const fences = new Map<string, Fence>()
  for (const { request, result } of events) {
    if (result.kind === 'ok' && 'lease' in result.decision) {
      fences.set(result.decision.lease.claimId, result.decision.lease.fence)
    }
    if (request.kind === 'settle') fences.set(request.grant.claimId, request.grant.fence)
    else if ('fence' in request) fences.set(request.claimId, request.fence)
  }

  /** Null when the answer has a fence that cannot come here: it is older than one that was granted before. */
  function fenceFor({ record, fence }: Prefix, { request, result }: HistoryEvent): Fence | null {
    const seen = result.kind === 'ok' ? fenceIn(result.decision) : null
    const held =
      record !== null && (seen === record.fence || (record.state === 'unknown' && seen === record.probe?.fence))
    if (seen !== null && !held) return seen > fence ? seen : null
    const lost = result.kind === 'info' && request.kind === 'claim' ? fences.get(request.claimId) : undefined
    return lost !== undefined && lost > fence ? lost : fence + BETWEEN
  }

  function place(prefix: Prefix, event: HistoryEvent): Prefix[] {
    const { request, result } = event
    const fence = fenceFor(prefix, event)
    if (fence === null) return []
    const placed = [...prefix.placed, event]
    const left = prefix.left.filter((other) => other !== event)
    // When an unanswered call took effect is unknown: at the last time that was seen, or at that of the next answer.
    const times = result.kind === 'ok' ? [result.now] : timesFor(prefix)
    return times.flatMap((now) => {
      const { record, decision } = transition(prefix.record, request, { now, fence })
      if (result.kind === 'ok' && !sameAnswer(decision, result.decision)) return []
      const used = record !== prefix.record
      // An unanswered call that would change nothing here explains nothing here.
      if (result.kind === 'info' && !used) return []
      return [{ placed, left, record, fence: used ? Math.max(prefix.fence, highest(record)) : prefix.fence, now }]
    })
  }

  /** An answer that changed nothing can be placed as soon as it fits: no other order becomes impossible by it. */
  function settleReads(from: Prefix): Prefix {
    let prefix = from
    for (;;) {
      const reads = candidates(prefix).flatMap((event) => (event.result.kind === 'ok' ? place(prefix, event) : []))
      const read = reads.find(({ record }) => record === prefix.record)
      if (read === undefined) return prefix
      prefix = read
    }
  }

  return { place, settleReads }
}

function highest(record: LedgerRecord | null): Fence {
  if (record === null) return 0
  return Math.max(record.fence, record.state === 'unknown' ? (record.probe?.fence ?? 0) : 0)
}

function timesFor(prefix: Prefix): number[] {
  const next = candidates(prefix).flatMap(({ result }) => (result.kind === 'ok' ? [result.now] : []))
  return [...new Set([prefix.now, ...next])]
}
