import type { Fence } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Call } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { nowSql } from './clock-sql.ts'
import type { Borrowed } from './core.ts'
import type { Names } from './names.ts'
import type { TextRow } from './statement.ts'
import { columnsOf, recordOf } from './statement.ts'

/**
 * Finds leases that ended without a settle. No index leads to them, because every settle would write it; but every grant has
 * a larger fence than all before it. So each fence is checked once, and what was in progress then is remembered and checked
 * again: a long-running attempt does not force a scan of everything after it.
 */
export type LapsedScan = (on: Borrowed, search: Search) => Promise<LapsedAnswer>

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

/**
 * A fence is taken before its row is committed, so a smaller one may still appear behind a larger one. Not after this
 * time: statements and transactions that grant a lease are ended by the server long before. Younger rows are looked at
 * again and again, and so are fences that the sequence has not reached: they came back with a record that a reset lost.
 */
const IN_FLIGHT_MS = 3 * limits.storeCallMs
/** Attempts in progress that are remembered; past it the scan continues when some of them have ended. */
const OPEN_MOST = 100_000
/** Fences asked about in one statement. */
const ASKED_MOST = 5_000
/** Of the caller's time: the first scan of a large table is continued by the next call. */
const SCAN_SHARE = 1 / 2

const RUNNING = `state IN (${stateCode.reserved}, ${stateCode.running})`

export function createLapsedScan(names: Names): LapsedScan {
  const open = new Set<Fence>()
  let seenTo: Fence = 0

  /** Walks from the first fence that was not seen yet to the newest, and answers those in progress among the young. */
  async function lookFurther({ rows }: Borrowed, budgetMs: number): Promise<Fence[]> {
    const untilMs = performance.now() + budgetMs
    const young: Fence[] = []
    let settled = true
    for (let at = seenTo; open.size < OPEN_MOST && performance.now() < untilMs; ) {
      const [row] = await rows(scanStatement(names), [at, limits.scanRows])
      if (row === undefined || row['last'] === null) break
      const running = fencesOf(row['running'])
      const youngest = row['young'] === null ? null : Number(row['young'])
      at = Number(row['last']) + 1
      for (const fence of running) {
        if (settled && (youngest === null || fence < youngest)) open.add(fence)
        else young.push(fence)
      }
      // Up to the last old one, not to the first young one: between them a fence may be taken and not yet committed.
      if (settled && row['old_to'] !== null) seenTo = Math.max(seenTo, Number(row['old_to']) + 1)
      if (youngest !== null) settled = false
      if (Number(row['count']) < limits.scanRows) break
    }
    return young
  }

  return async (on, { from, limit, call }) => {
    const young = await lookFurther(on, call.timeoutMs * SCAN_SHARE)
    const asked = [...new Set([...open, ...young])].filter((fence) => fence >= from).toSorted((a, b) => a - b)
    const lapsed: Fence[] = []
    let next: Fence | null = null
    let now: number | null = null
    for (let at = 0; at < asked.length && lapsed.length < limit; at += ASKED_MOST) {
      const part = asked.slice(at, at + ASKED_MOST)
      const [row] = await on.rows(askStatement(names), [part])
      const running = new Set(fencesOf(row?.['running']))
      for (const fence of part) if (!running.has(fence)) open.delete(fence)
      next ??= part.find((fence) => running.has(fence)) ?? null
      lapsed.push(...fencesOf(row?.['lapsed']))
      now = Number(row?.['now'])
    }
    const found = await on.rows(rowsStatement(names), [lapsed.slice(0, limit)])
    return {
      now: now ?? Number((await on.rows(`SELECT ${nowSql(names)} AS now`))[0]?.['now']),
      rows: found.map(recordOf),
      // Never past what was seen for good: a smaller fence than the one in progress may still appear.
      next: Math.max(from, Math.min(next ?? seenTo, seenTo)),
    }
  }
}

function scanStatement(names: Names): string {
  return `
    WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now, last_value AS last_fence FROM ${names.fences}),
    page AS MATERIALIZED (
      SELECT fence, state, claimed_at FROM ${names.records} WHERE fence >= $1::bigint ORDER BY fence LIMIT $2::int
    ),
    first_young AS MATERIALIZED (
      SELECT least(last_fence + 1, min(fence)) AS fence FROM page, moment
      WHERE claimed_at > now - ${IN_FLIGHT_MS} OR fence > last_fence GROUP BY last_fence
    )
    SELECT (SELECT count(*) FROM page) AS count, (SELECT max(fence) FROM page) AS last,
      (SELECT fence FROM first_young) AS young,
      (SELECT max(fence) FROM page
       WHERE fence < coalesce((SELECT fence FROM first_young), ${Number.MAX_SAFE_INTEGER})) AS old_to,
      ARRAY(SELECT fence FROM page WHERE ${RUNNING}) AS running`
}

function askStatement(names: Names): string {
  return `
    WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now),
    found AS MATERIALIZED (SELECT fence, due_at FROM ${names.records} WHERE fence = ANY ($1::bigint[]) AND ${RUNNING})
    SELECT (SELECT now FROM moment) AS now, ARRAY(SELECT fence FROM found) AS running,
      ARRAY(SELECT fence FROM found, moment WHERE due_at + ${limits.leaseGraceMs} <= now ORDER BY fence) AS lapsed`
}

function rowsStatement(names: Names): string {
  return `
    SELECT ${columnsOf('r')} FROM ${names.records} AS r
    WHERE r.fence = ANY ($1::bigint[]) AND r.${RUNNING} ORDER BY r.fence`
}

/** `{1,2,3}`, as the server writes an array. */
function fencesOf(array: TextRow[string] | undefined): Fence[] {
  const inner = (array ?? '{}').slice(1, -1)
  return inner === '' ? [] : inner.split(',').map(Number)
}
