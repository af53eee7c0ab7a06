import type { LedgerRecord } from './record.ts'
import { goneAtOf } from './record.ts'
import type { DecisionOf, Request } from './request.ts'
import { claim } from './transition-claim.ts'
import { attach, release, renew, settle, start } from './transition-holder.ts'
import { forget, probe, reconcile, replace, resolve, unique } from './transition-operator.ts'
import type { Moment, Step } from './transition-parts.ts'

export type { Moment, Step } from './transition-parts.ts'
export { runningUnder } from './transition-parts.ts'

/**
 * The whole machine. The memory store runs it; SQL statements and scripts implement it; the conformance kit compares
 * every store with it on random histories. A guarantee is written here once, and checked everywhere.
 */
export function transition<R extends Request>(stored: LedgerRecord | null, request: R, at: Moment): Step<DecisionOf<R>>
export function transition(stored: LedgerRecord | null, request: Request, at: Moment): Step {
  // A record past its end does not exist, whether or not the sweep has been there.
  const goneAt = stored === null ? null : goneAtOf(stored)
  const record = goneAt !== null && goneAt <= at.now ? null : stored
  const step = decide(record, request, at, stored)
  // Nothing decided, nothing written: the sweep removes the expired row later.
  return step.record === null && stored !== null ? { ...step, record: stored } : step
}

function decide(record: LedgerRecord | null, request: Request, at: Moment, stored: LedgerRecord | null): Step {
  switch (request.kind) {
    case 'claim':
      return claim(record, request, at, stored)
    case 'start':
      return start(record, request, at)
    case 'renew':
      return renew(record, request, at)
    case 'attach':
      return attach(record, request)
    case 'settle':
      return settle(record, request, at, stored)
    case 'release':
      return release(record, request, at)
    case 'reconcile':
      return reconcile(record, at)
    case 'probe':
      return probe(record, request, at)
    case 'resolve':
      return resolve(record, request, at)
    case 'forget':
      return forget(record, request, at)
    case 'unique':
      return unique(record, request, at)
    case 'replace':
      return replace(stored, request, at)
  }
}
