import type { LedgerRecord, VisibleState } from '../core/record.ts'
import { visibleStates } from '../core/record.ts'
import { mentionOf } from './mentions.ts'
import type { RecordFilter, StateCounts } from './port.ts'

/** The filter of operators, for stores that have no query language to put it into. */

export type VisibleRecord = Exclude<LedgerRecord, { state: 'vacant' }>

/** Past its end a record is invisible at once, whether or not the sweep has been there. */
export function isVisible(record: LedgerRecord, now: number): record is VisibleRecord {
  switch (record.state) {
    case 'vacant':
      return false
    case 'in_progress':
    case 'unknown':
      return true
    case 'succeeded':
    case 'failed_terminal':
    case 'failed_retryable':
      return record.expiresAt > now
  }
}

export function fits(record: LedgerRecord, filter: RecordFilter): boolean {
  const { identity, state, claimedAt } = record
  return (
    (filter.tenant === undefined || filter.tenant === identity.tenant) &&
    (filter.caller === undefined || filter.caller === identity.caller) &&
    (filter.operation === undefined || filter.operation === identity.operation) &&
    (filter.key === undefined || filter.key === identity.key) &&
    (filter.state === undefined || filter.state === state) &&
    (filter.since === undefined || filter.since <= claimedAt) &&
    (filter.mentions === undefined || mentionOf(record, filter.mentions) !== null)
  )
}

export function countStates(records: Iterable<VisibleRecord>): StateCounts {
  const counts = Object.fromEntries(visibleStates.map((state) => [state, 0])) as Record<VisibleState, number>
  for (const { state } of records) counts[state] += 1
  return counts
}
