import { OnceError } from '../../core/errors.ts'
import { FOREVER, limits } from '../../core/limits.ts'
import type { Page, RecordFilter, RecordView } from '../../store/port.ts'
import type { RecordRow } from '../../store/row.ts'
import type { TimeSource } from './clock.ts'
import type { Connection } from './connection.ts'
import { FILTER_COLUMNS, whereOf } from './filter.ts'
import type { Meta } from './meta.ts'
import { nowOf } from './meta.ts'
import { BY_ID, COLUMNS, recordOf } from './records.ts'
import { STEP_ROWS } from './steps.ts'

/** Fences grow with time, so their order is the order of claims. Two records share one only after a store was reset. */
interface Position {
  readonly fence: number
  readonly seq: number
}

const START: Position = { fence: FOREVER, seq: FOREVER }
const FROM_HERE = 'fence <= ? AND (fence < ? OR seq < ?) ORDER BY fence DESC, seq DESC'

export interface Listing {
  /** Looks at some more rows; the page when it is full, the end was reached, or enough was looked at. */
  step(reader: Connection): Page<RecordView> | null
}

export function startListing(filter: RecordFilter, limit: number, cursor: string | null, time: TimeSource): Listing {
  const wanted = Math.max(1, Math.min(limit, limits.pageRows))
  const rows: RecordView[] = []
  let position = cursor === null ? START : parsed(cursor)
  let looked = 0

  return {
    step: (reader) => {
      const meta = reader.meta.read()
      const found = matching(reader, filter, nowOf(meta, time), position, wanted - rows.length)
      for (const { seq } of found) {
        const view = viewAt(reader, seq, meta)
        if (view !== null) rows.push(view)
      }
      const last = found.at(-1)
      if (rows.length >= wanted && last !== undefined) return { rows, cursor: written(last) }
      const end = endOfStep(reader, position)
      if (end === undefined) return { rows, cursor: null }
      position = end
      looked += STEP_ROWS
      return looked >= limits.scanRows ? { rows, cursor: written(end) } : null
    },
  }
}

/** The filter runs inside SQLite on the small columns; whole rows are read only where it fits. */
function matching(reader: Connection, filter: RecordFilter, now: number, from: Position, limit: number): Position[] {
  const where = whereOf(filter, now)
  const text = `SELECT seq, fence FROM
      (SELECT seq, fence, ${FILTER_COLUMNS} FROM onceonly_records WHERE ${FROM_HERE} LIMIT ${STEP_ROWS})
    WHERE ${where.text} ORDER BY fence DESC, seq DESC LIMIT ?`
  const statement = reader.statements.prepared(text)
  return statement.all(from.fence, from.fence, from.seq, ...where.values, limit) as unknown as Position[]
}

function endOfStep(reader: Connection, from: Position): Position | undefined {
  const text = `SELECT seq, fence FROM onceonly_records WHERE ${FROM_HERE} LIMIT 1 OFFSET ${STEP_ROWS - 1}`
  const row = reader.statements.prepared(text).get(from.fence, from.fence, from.seq)
  return row as unknown as Position | undefined
}

interface ViewRow extends RecordRow {
  readonly replays: number
  readonly conflicts: number
  readonly in_progress: number
  readonly repeated_at: number | null
}

const VIEW = `SELECT lower(hex(id)) AS id, replays, conflicts, in_progress, repeated_at, ${COLUMNS} FROM onceonly_records`

function viewAt(reader: Connection, seq: number, meta: Meta): RecordView | null {
  return viewOf(reader.statements.prepared(`${VIEW} WHERE seq = ?`).get(seq), meta)
}

export function viewById(reader: Connection, id: Uint8Array, meta: Meta): RecordView | null {
  return viewOf(reader.statements.prepared(`${VIEW} WHERE ${BY_ID}`).get(id, id), meta)
}

function viewOf(found: unknown, meta: Meta): RecordView | null {
  if (found === undefined) return null
  const row = found as ViewRow
  const { replays, conflicts, in_progress: inProgress, repeated_at: repeatedAt } = row
  return { record: recordOf(row, row.id, meta), replays, conflicts, inProgress, repeatedAt }
}

function written({ fence, seq }: Position): string {
  return `${fence}.${seq}`
}

function parsed(cursor: string): Position {
  const [fence, seq] = /^(\d{1,16})\.(\d{1,16})$/.exec(cursor)?.slice(1).map(Number) ?? []
  if (fence === undefined || seq === undefined)
    throw new OnceError('bad_option', 'The `cursor` is not one of this store.')
  return { fence: Math.min(fence, FOREVER), seq: Math.min(seq, FOREVER) }
}
