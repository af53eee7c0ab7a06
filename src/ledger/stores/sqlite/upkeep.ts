import { limits } from '../../core/limits.ts'
import type { Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { foreignCursor } from '../../store/sql/list.ts'
import type { RecordTables } from '../../store/sql/tables.ts'
import { createForgetTallies, createTally } from '../../store/sql/tallies.ts'
import { nowOf } from './clock.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'
import { ID_BYTES, LEADS_NOWHERE } from './records.ts'

/** How long a step may keep the only writer: a claim that arrives in the middle waits for no more than this. */
const STEP_MS = 5
/** Rows of a step, found by how long the last ones took. */
const STEP_ROWS_FIRST = 1_024
/**
 * About two milliseconds of work. On a machine that is short of it a step takes longer, and fewer rows would not help.
 */
const STEP_ROWS_LEAST = 256

/** Ids that are looked at for each record that was removed: with two, at most half of all ids ever lead nowhere. */
const IDS_PER_RECORD = 2

export function createUpkeep(engine: Engine, tables: RecordTables): Upkeep {
  const { clock } = engine
  const forgetTallies = createForgetTallies(tables)
  let stepRows = STEP_ROWS_FIRST
  let idsAfter: Uint8Array = NO_ID

  /** Half as many rows after a step that took too long, more after a short one. */
  function noteStep(tookMs: number): void {
    if (tookMs > STEP_MS) stepRows = Math.max(STEP_ROWS_LEAST, stepRows >> 1)
    else if (tookMs < STEP_MS / 2) stepRows = Math.min(limits.ledgerSweepRows, stepRows * 2)
  }

  return {
    sweep: async (cursor, limit, call) => {
      const after = cursor === null ? 0 : parsed(cursor)
      // 1. Check on the reader: most rows are not due, and no writer should wait for that.
      const rows = Math.min(limit, stepRows)
      const look = await engine.read(call, (reader) => lookAfter(reader, after, rows, nowOf(reader.meta.read(), clock)))
      const { last, looked } = look
      const next = looked < rows ? null : String(last)
      let [removed, waitedMs] = [0, 0]
      // 2. Write, asking again there: a claim may have come in between.
      if (look.gone + look.over > 0) {
        const askedMs = clock.monotonicMs()
        await engine.write('upkeep', call, (writer) => {
          const beganMs = clock.monotonicMs()
          const now = nowOf(writer.meta.read(), clock)
          removed = removeBetween(writer, after, last, now)
          if (look.over > 0) writer.statements.prepared(EMPTY).run(after, last, now, now)
          if (removed > 0) idsAfter = removeIds(writer, idsAfter, removed * IDS_PER_RECORD)
          waitedMs = beganMs - askedMs
          noteStep(clock.monotonicMs() - beganMs)
        })
      }
      if (next === null) await tables.write(call, forgetTallies)
      return { cursor: next, looked, removed, waitedMs }
    },
    tally: createTally(tables),
  }
}

const REPLAYABLE = `state IN (${stateCode.succeeded}, ${stateCode.failed_terminal})`
// `typeof` reads the header of a row only, not the outcome in its overflow pages.
const LOOK = `SELECT count(*) AS looked, max(seq) AS last, coalesce(sum(gone_at <= ?), 0) AS gone,
    coalesce(sum(gone_at > ? AND expires_at <= ? AND kind <> 'null' AND ${REPLAYABLE}), 0) AS over
  FROM (SELECT seq, gone_at, expires_at, state, typeof(outcome) AS kind
    FROM onceonly_records WHERE seq > ? ORDER BY seq LIMIT ?)`

interface Look {
  readonly looked: number
  /** The last row that was looked at. */
  readonly last: number
  /** Rows past their end, and rows past replay. */
  readonly gone: number
  readonly over: number
}

/** By the primary key, which is the order on disk. */
function lookAfter({ statements }: Connection, after: number, limit: number, now: number): Look {
  return statements.prepared(LOOK).get(now, now, now, after, limit) as unknown as Look
}

const RAISE_FLOOR = `UPDATE onceonly_meta SET fence = newest.fence FROM
  (SELECT max(fence) AS fence FROM onceonly_records) AS newest WHERE one = 1 AND newest.fence > onceonly_meta.fence`
const REMOVE = 'DELETE FROM onceonly_records WHERE seq > ? AND seq <= ? AND gone_at <= ?'
/** Past replay, only the fact that the key was used is worth keeping. */
const EMPTY = `UPDATE onceonly_records SET outcome = NULL, pointer = NULL, detail = NULL
  WHERE seq > ? AND seq <= ? AND expires_at <= ? AND gone_at > ? AND typeof(outcome) <> 'null' AND ${REPLAYABLE}`

/** Past its end, nothing of a record is kept. */
function removeBetween({ statements }: Connection, after: number, last: number, now: number): number {
  // Once for all of them; else the trigger would raise the floor with every row.
  statements.prepared(RAISE_FLOOR).run()
  return Number(statements.prepared(REMOVE).run(after, last, now).changes)
}

/** Before every id. */
const NO_ID = new Uint8Array(0)
const NEXT_IDS = 'SELECT id FROM onceonly_ids WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?'
const OLDEST = 'SELECT min(seq) AS seq FROM onceonly_records'
// Most ids that lead nowhere lead to before the oldest record, which is known without a look for each.
const REMOVE_IDS = `DELETE FROM onceonly_ids WHERE id > ? AND id <= ? AND (seq < ? OR ${LEADS_NOWHERE})`
const LAST_ID = new Uint8Array(ID_BYTES).fill(0xff)

/** Some of the ids in their order, those on one page together. Returns where to continue. */
function removeIds({ statements }: Connection, after: Uint8Array, count: number): Uint8Array {
  const oldest = (statements.prepared(OLDEST).get()?.['seq'] as number | undefined) ?? Number.MAX_SAFE_INTEGER
  const next = statements.prepared(NEXT_IDS).get(after, count - 1)?.['id'] as Uint8Array | undefined
  statements.prepared(REMOVE_IDS).run(after, next ?? LAST_ID, oldest)
  return next ?? NO_ID
}

function parsed(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw foreignCursor()
}
