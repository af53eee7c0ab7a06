import { OnceError } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord, VisibleState } from '../../core/record.ts'
import { visibleStates } from '../../core/record.ts'
import type { BusyCaller, Page, Queries, RecordFilter, StateCounts } from '../../store/port.ts'
import type { RecordRow } from '../../store/row.ts'
import { stateCode } from '../../store/row.ts'
import type { TimeSource } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'
import { stateOfCode, whereOf } from './filter.ts'
import { createLapsedScan } from './lapsed.ts'
import { startListing, viewById } from './list.ts'
import { nowOf } from './meta.ts'
import { blobOf, COLUMNS, recordOf } from './records.ts'
import { inSteps, STEP_ROWS } from './steps.ts'

/** All on the reader: no question ever waits for the writer, or makes it wait. */
export function createQueries(engine: Engine): Queries {
  const { time } = engine
  const lapsed = createLapsedScan(time)
  return {
    get: (id, call) =>
      engine.read(call, (reader) => {
        const meta = reader.meta.read()
        const now = nowOf(meta, time)
        const view = viewById(reader, blobOf(id), meta)
        return { now, view: view !== null && isVisible(view.record, now) ? view : null }
      }),
    list: async (filter, { limit, cursor }, call) => {
      const listing = startListing(filter, limit, cursor, time)
      return await inSteps(engine, call, listing.step)
    },
    count: (filter, call) => inSteps(engine, call, startCount(filter, time)),
    lapsed: (from, limit, call) => inSteps(engine, call, lapsed.start(from, limit)),
    unknowns: async ({ limit, cursor }, call) => {
      const after = cursor === null ? '' : checkedId(cursor)
      return await engine.read(call, (reader) => unknownsAfter(reader, after, Math.min(limit, limits.pageRows)))
    },
    busiest: (since, limit, call) => engine.read(call, (reader) => busiestSince(reader, since, limit)),
  }
}

/** Expired records are invisible from the first millisecond on, whenever they are swept. */
function isVisible(record: LedgerRecord, now: number): boolean {
  if (record.state === 'vacant') return false
  return !('expiresAt' in record) || record.expiresAt > now
}

function startCount(filter: RecordFilter, time: TimeSource): (reader: Connection) => StateCounts | null {
  const counts = Object.fromEntries(visibleStates.map((state) => [state, 0])) as Record<VisibleState, number>
  let after = 0
  return ({ statements, meta }) => {
    const first = statements.prepared('SELECT min(seq) AS seq FROM onceonly_records WHERE seq > ?').get(after)?.['seq']
    if (typeof first !== 'number') return counts
    const where = whereOf({ ...filter, ended: false }, nowOf(meta.read(), time))
    const text = `SELECT state, count(*) AS rows FROM onceonly_records
      WHERE seq >= ? AND seq < ? AND ${where.text} GROUP BY state`
    for (const row of statements.prepared(text).all(first, first + STEP_ROWS, ...where.values)) {
      const state = stateOfCode.get(Number(row['state']))
      if (state !== undefined) counts[state] += Number(row['rows'])
    }
    after = first + STEP_ROWS - 1
    return null
  }
}

const UNKNOWNS = `SELECT lower(hex(r.id)) AS id, ${COLUMNS}
  FROM (SELECT id FROM onceonly_unknowns WHERE id > ? ORDER BY id LIMIT ?) AS u
    JOIN onceonly_ids AS i ON i.id = u.id JOIN onceonly_records AS r ON r.seq = i.seq AND r.id = u.id
  WHERE state = ${stateCode.unknown} ORDER BY u.id`

/** In the order of their ids: they are few, and the reconciler goes through all of them. */
function unknownsAfter({ statements, meta }: Connection, after: RecordId, limit: number): Page<LedgerRecord> {
  const anchor = meta.read()
  const found = statements.prepared(UNKNOWNS).all(Buffer.from(after, 'hex'), limit) as unknown as RecordRow[]
  const rows = found.map((row) => recordOf(row, row.id, anchor))
  return { rows, cursor: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
}

function checkedId(cursor: string): RecordId {
  if (/^[0-9a-f]{32}$/.test(cursor)) return cursor
  throw new OnceError('bad_option', 'The `cursor` is not one of this store.')
}

const BUSIEST = `SELECT tenant, caller, operation,
    sum(claims) AS claims, sum(replays) AS replays, sum(conflicts) AS conflicts,
    sum(in_progress) AS inProgress
  FROM onceonly_tallies WHERE bucket > ? GROUP BY tenant, caller, operation
  ORDER BY sum(claims) + sum(replays) + sum(conflicts) + sum(in_progress) DESC, tenant, caller, operation LIMIT ?`

/** A bucket counts when any part of it is recent enough. */
function busiestSince({ statements }: Connection, since: number, limit: number): BusyCaller[] {
  const rows = statements.prepared(BUSIEST).all(since - limits.tallyBucketMs, limit)
  return rows.map((row) => ({ ...row })) as unknown as BusyCaller[]
}
