import type { RecordId } from '../../core/identity.ts'
import type { InProgress, LedgerRecord, Unknown } from '../../core/record.ts'
import { hasLapsed } from '../../core/transition-parts.ts'
import type { Page, Queries, RecordFilter, RecordView } from '../../store/port.ts'
import { countStates, fits, isVisible } from '../../store/visible.ts'
import type { CallerStatistics } from './callers.ts'
import type { Core } from './core.ts'
import { openRecords, UNCOUNTED } from './tables.ts'

export function createQueries(core: Core, callers: CallerStatistics): Queries {
  const { tables, time } = core

  function viewOf(record: LedgerRecord): RecordView {
    return { record, ...(tables.counts.get(record.id) ?? UNCOUNTED) }
  }

  /** A look at everything: this store is as large as the memory of one process, and operators ask rarely. */
  function matching(filter: RecordFilter): LedgerRecord[] {
    const now = time.nowMs()
    const found: LedgerRecord[] = []
    for (const record of tables.records.values()) {
      if ((filter.ended === true || isVisible(record, now)) && fits(record, filter)) found.push(record)
    }
    return found
  }

  return {
    get: async (id: RecordId) => {
      core.checkOpen()
      const now = time.nowMs()
      const record = tables.records.get(id)
      return { now, view: record !== undefined && isVisible(record, now) ? viewOf(record) : null }
    },
    list: async (filter, { limit, cursor }) => {
      core.checkOpen()
      const { rows, cursor: next } = pageOf(matching(filter), limit, cursor)
      return { rows: rows.map(viewOf), cursor: next }
    },
    count: async (filter) => {
      core.checkOpen()
      const now = time.nowMs()
      return countStates(matching(filter).filter((record) => isVisible(record, now)))
    },
    lapsed: async (from, limit) => {
      core.checkOpen()
      const now = time.nowMs()
      const running = openRecords(tables)
        .filter((record): record is InProgress => record.state === 'in_progress' && record.fence >= from)
        .toSorted((a, b) => a.fence - b.fence)
      const rows = running.filter((record) => hasLapsed(record, now)).slice(0, limit)
      return { now, rows, next: running[0]?.fence ?? tables.lastFence + 1 }
    },
    unknowns: async ({ limit, cursor }) => {
      core.checkOpen()
      const unknowns = openRecords(tables).filter((record): record is Unknown => record.state === 'unknown')
      return pageOf(unknowns, limit, cursor)
    },
    busiest: async (since, limit) => {
      core.checkOpen()
      return callers.busiest(since, limit)
    },
  }
}

/** Newest first by fence; the cursor is the fence of the last row that was given. */
function pageOf<R extends LedgerRecord>(records: readonly R[], limit: number, cursor: string | null): Page<R> {
  const below = cursor === null ? Number.POSITIVE_INFINITY : Number(cursor)
  const sorted = records.filter((record) => record.fence < below).toSorted((a, b) => b.fence - a.fence)
  const rows = sorted.slice(0, limit)
  const last = rows.at(-1)
  return { rows, cursor: last === undefined || sorted.length === rows.length ? null : String(last.fence) }
}
