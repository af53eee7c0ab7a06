import type { Fence } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { hasLapsed } from '../../core/transition-parts.ts'
import type { RecordRow } from '../../store/row.ts'
import { stateCode } from '../../store/row.ts'
import type { TimeSource } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Meta } from './meta.ts'
import { nowOf } from './meta.ts'
import { COLUMNS, recordOf } from './records.ts'
import { STEP_ROWS } from './steps.ts'

/**
 * Finds leases that ended without a settle. No index leads to them, because every settle would write it; but every grant has
 * a larger fence than all before it. So each fence is checked once, and what was in progress then is remembered and checked
 * again: a long-running attempt does not force a scan of everything after it.
 */
export interface LapsedScan {
  /** Begins one search, to be called in steps: it answers when the newest fence was reached, or enough was found. */
  start(from: Fence, limit: number): (reader: Connection) => LapsedAnswer | null
}

interface LapsedAnswer {
  readonly now: number
  readonly rows: readonly LedgerRecord[]
  readonly next: Fence
}

/** Attempts in progress that are remembered; past it the scan continues when some of them have ended. */
const OPEN_MOST = 100_000
const RUNNING = `state IN (${stateCode.reserved}, ${stateCode.running})`
const FIRST = 'SELECT min(fence) AS fence FROM onceonly_records WHERE fence >= ?'
const OPEN = `SELECT fence FROM onceonly_records WHERE fence >= ? AND fence < ? AND ${RUNNING} ORDER BY fence`
const ROW = `SELECT lower(hex(id)) AS id, ${COLUMNS} FROM onceonly_records WHERE fence = ? AND ${RUNNING}`

export function createLapsedScan(time: TimeSource): LapsedScan {
  /** Fences below this were looked at. */
  let seenTo = 0
  /** Those of them that were in progress when last looked at, oldest first. */
  let open: Fence[] = []

  /** False when it has reached the newest fence, or can remember no more. */
  function lookFurther({ statements, meta }: Connection): boolean {
    if (open.length >= OPEN_MOST) return false
    // The counter is read before the rows: a fence that is granted in between is left for the next look.
    const end = meta.read().fence + 1
    const first = statements.prepared(FIRST).get(seenTo)?.['fence']
    if (typeof first !== 'number' || first >= end) return false
    const to = Math.min(first + STEP_ROWS, end)
    for (const row of statements.prepared(OPEN).all(first, to)) open.push(Number(row['fence']))
    seenTo = to
    return true
  }

  /** Several searches may be under way, so each goes by fences and not by places in the list. */
  function forget(ended: ReadonlySet<Fence>): void {
    if (ended.size > 0) open = open.filter((fence) => !ended.has(fence))
  }

  function start(from: Fence, limit: number): (reader: Connection) => LapsedAnswer | null {
    const rows: LedgerRecord[] = []
    let next: Fence | null = null
    let walked = -1

    /** True at the end of the list, or when enough was found. */
    function walk(reader: Connection, meta: Meta, now: number): boolean {
      const ended = new Set<Fence>()
      const begin = open.findIndex((fence) => fence > walked)
      const part = begin === -1 ? [] : open.slice(begin, begin + STEP_ROWS)
      for (const fence of part) {
        if (rows.length >= limit) break
        walked = fence
        const row = reader.statements.prepared(ROW).get(fence) as RecordRow | undefined
        if (row === undefined) ended.add(fence)
        else if (fence >= from) {
          next ??= fence
          const record = recordOf(row, row.id, meta)
          if (record.state === 'in_progress' && hasLapsed(record, now)) rows.push(record)
        }
      }
      forget(ended)
      return rows.length >= limit || part.length < STEP_ROWS
    }

    return (reader) => {
      if (lookFurther(reader)) return null
      const meta = reader.meta.read()
      const now = nowOf(meta, time)
      return walk(reader, meta, now) ? { now, rows, next: next ?? Math.max(from, seenTo) } : null
    }
  }

  return { start }
}
