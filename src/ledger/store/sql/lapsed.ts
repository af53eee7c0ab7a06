import type { Fence } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Call } from '../port.ts'
import type { RecordTables, TableQuery } from './tables.ts'
import { numberOf, RUNNING, recordOf, recordSql } from './tables.ts'

/**
 * Finds leases that ended without a settle. No index leads to them, because every settle would write it; but every grant has
 * a larger fence than all before it. So each fence is checked once, and what was in progress then is remembered and checked
 * again: a long-running attempt does not force a scan of everything after it.
 */
export type LapsedScan = (query: TableQuery, search: Search) => Promise<LapsedAnswer>

export interface Search {
  readonly from: Fence
  readonly limit: number
  readonly call: Call
}

interface LapsedAnswer {
  readonly now: number
  readonly rows: readonly LedgerRecord[]
  readonly next: Fence
}

/** Attempts in progress that are remembered; past it the scan continues when some of them have ended. */
const OPEN_MOST = 100_000
/** Fences asked about in one statement. */
const ASKED_MOST = 5_000
/** Of the caller's time: the first scan of a large table is continued by the next call. */
const SCAN_SHARE = 1 / 2

export function createLapsedScan(tables: RecordTables): LapsedScan {
  const { stepRows, dialect } = tables
  const texts = statementsOf(tables)
  const askedMost = Math.min(ASKED_MOST, stepRows)
  const open = new Set<Fence>()
  let seenTo: Fence = 0

  /**
   * Walks from the first fence that was not seen yet to the newest, and answers those in progress among the young. Rows are
   * young while a smaller fence may still appear, and so are fences that were not granted yet: they came back with a record
   * that a reset lost. Young ones are looked at again by every search.
   */
  async function lookFurther(query: TableQuery, budgetMs: number): Promise<{ young: Fence[]; now: number | null }> {
    const untilMs = performance.now() + budgetMs
    const young: Fence[] = []
    let settled = true
    let now: number | null = null
    for (let at = seenTo; open.size < OPEN_MOST && performance.now() < untilMs; ) {
      const rows = await query(texts.scan, [at, stepRows])
      const [page] = rows
      now = numberOf(page?.['now'])
      const last = numberOf(page?.['last'])
      if (page === undefined || last === null) break
      const youngest = numberOf(page['young'])
      const oldTo = numberOf(page['old_to'])
      at = last + 1
      for (const row of rows) {
        const fence = numberOf(row['running'])
        if (fence === null) continue
        if (settled && (youngest === null || fence < youngest)) open.add(fence)
        else young.push(fence)
      }
      // Up to the last old one, not to the first young one: between them a fence may be taken and not yet committed.
      if (settled && oldTo !== null) seenTo = Math.max(seenTo, oldTo + 1)
      if (youngest !== null) settled = false
      if (Number(page['looked']) < stepRows) break
    }
    return { young, now }
  }

  return async (query, { from, limit, call }) => {
    const { young, now: lookedAt } = await lookFurther(query, call.timeoutMs * SCAN_SHARE)
    const asked = [...new Set([...open, ...young])].filter((fence) => fence >= from).toSorted((a, b) => a - b)
    const lapsed: Fence[] = []
    let next: Fence | null = null
    let now = lookedAt
    // Where nothing is in progress there is no second question, but for the time if it is not known yet.
    for (let at = 0; now === null || (at < asked.length && lapsed.length < limit); at += askedMost) {
      const part = asked.slice(at, at + askedMost)
      const found = await query(texts.ask, [dialect.numbersValue(part)])
      const running = new Set(found.flatMap(({ fence }) => numberOf(fence) ?? []))
      for (const fence of part) if (!running.has(fence)) open.delete(fence)
      next ??= part.find((fence) => running.has(fence)) ?? null
      for (const row of found) if (Number(row['lapsed']) === 1) lapsed.push(Number(row['fence']))
      now = Number(found[0]?.['now'])
    }
    const rows: LedgerRecord[] = []
    for (const part of partsOf(lapsed.toSorted((a, b) => a - b).slice(0, limit), askedMost)) {
      rows.push(...(await query(texts.rows, [dialect.numbersValue(part)])).map(recordOf))
    }
    // Never past what was seen for good: a smaller fence than the one in progress may still appear.
    return { now, rows, next: Math.max(from, Math.min(next ?? seenTo, seenTo)) }
  }
}

function statementsOf(tables: RecordTables): Record<'scan' | 'ask' | 'rows', string> {
  const { dialect, records, now, lastFence, inFlightMs } = tables
  const dueAt = tables.dueAt?.('r') ?? 'r.due_at'
  const big = dialect.place('bigint')
  const ofFences = tables.ofFences ?? `${records} AS r ON ${dialect.isOneOf('r.fence')}`
  return {
    scan: `
      WITH moment AS (SELECT ${now} AS now, ${lastFence} AS last_fence),
      page AS (SELECT fence, state, claimed_at FROM ${records} WHERE fence >= ${big} ORDER BY fence LIMIT ${big}),
      young AS (
        SELECT min(page.fence) AS fence FROM page, moment
        WHERE page.claimed_at > moment.now - ${inFlightMs} OR page.fence > moment.last_fence
      ),
      summary AS (
        SELECT (SELECT now FROM moment) AS now, (SELECT count(*) FROM page) AS looked, (SELECT max(fence) FROM page) AS last,
          (SELECT fence FROM young) AS young,
          (SELECT max(fence) FROM page
           WHERE fence < coalesce((SELECT fence FROM young), ${Number.MAX_SAFE_INTEGER})) AS old_to
      )
      SELECT summary.now, summary.looked, summary.last, summary.young, summary.old_to, page.fence AS running
      FROM summary LEFT JOIN page ON page.${RUNNING}`,
    ask: `
      SELECT moment.now, r.fence, CASE WHEN ${dueAt} + ${limits.leaseGraceMs} <= moment.now THEN 1 ELSE 0 END AS lapsed
      FROM (SELECT ${now} AS now) AS moment LEFT JOIN ${ofFences} AND r.${RUNNING}`,
    rows: `
      SELECT ${recordSql(tables, 'r')} FROM ${records} AS r
      WHERE ${dialect.isOneOf('r.fence')} AND r.${RUNNING} ORDER BY r.fence`,
  }
}

export function* partsOf<T>(rows: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < rows.length; from += size) yield rows.slice(from, from + size)
}
