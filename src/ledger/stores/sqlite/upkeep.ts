import { OnceError } from '../../core/errors.ts'
import { limits } from '../../core/limits.ts'
import type { BusyCaller, Call, Tally, Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import type { Connection } from './connection.ts'
import type { Engine } from './engine.ts'
import { nowOf } from './meta.ts'
import { blobOf } from './records.ts'

/** Rows of one write transaction of the upkeep: a claim that arrives in the middle waits for no more than these. */
const WRITE_ROWS = 64

/**
 * Upkeep is never urgent. After every part it rests this many times as long as that part took, waiting included: it
 * takes a fifth of an idle store, and much less of a busy one.
 */
const REST_SHARE = 4
const REST_MOST_MS = 100

async function restAfter<T>(part: () => Promise<T>): Promise<T> {
  const startedMs = performance.now()
  const result = await part()
  const restMs = Math.min(REST_SHARE * (performance.now() - startedMs), REST_MOST_MS)
  await new Promise((resolve) => void setTimeout(resolve, restMs))
  return result
}

export function createUpkeep(engine: Engine): Upkeep {
  async function inParts<T>(rows: readonly T[], call: Call, each: (writer: Connection, part: readonly T[]) => void) {
    for (let from = 0; from < rows.length; from += WRITE_ROWS) {
      const part = rows.slice(from, from + WRITE_ROWS)
      await restAfter(() => engine.write('upkeep', call, (writer) => each(writer, part)))
    }
  }

  return {
    sweep: async (cursor, limit, call) => {
      const after = cursor === null ? 0 : parsed(cursor)
      // 1. Look, on the reader: most rows are not due, and nobody should wait for that.
      const look = await restAfter(() =>
        engine.read(call, (reader) => lookAfter(reader, after, limit, nowOf(reader.meta.read(), engine.time))),
      )
      // 2. Write, in small parts, asking again there: a claim may have come in between.
      let removed = 0
      await inParts(look.due, call, (writer, part) => {
        removed += removeOrEmpty(writer, part, nowOf(writer.meta.read(), engine.time))
      })
      if (look.last === null) await forgetTallies(engine, call)
      return { cursor: look.last === null ? null : String(look.last), removed }
    },
    tally: async ({ records, callers }, call) => {
      await inParts(records, call, countOnRecords)
      await inParts(callers, call, (writer, part) => countCallers(writer, part, nowOf(writer.meta.read(), engine.time)))
    },
  }
}

// `typeof` reads the header of a row only, not the outcome in its overflow pages.
const DUE = `SELECT seq FROM
    (SELECT seq, gone_at, expires_at, state, typeof(outcome) AS kind FROM onceonly_records WHERE seq > ? ORDER BY seq LIMIT ?)
  WHERE gone_at <= ? OR (expires_at <= ? AND kind <> 'null' AND state IN (${stateCode.succeeded}, ${stateCode.failed_terminal}))`
const LAST = 'SELECT seq FROM onceonly_records WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?'

interface Look {
  readonly due: readonly number[]
  /** The last row that was looked at; null at the end of the table. */
  readonly last: number | null
}

/** By the primary key, which is the order on disk. */
function lookAfter({ statements }: Connection, after: number, limit: number, now: number): Look {
  const due = statements
    .prepared(DUE)
    .all(after, limit, now, now)
    .map((row) => Number(row['seq']))
  const last = statements.prepared(LAST).get(after, limit - 1)?.['seq']
  return { due, last: typeof last === 'number' ? last : null }
}

const RAISE_FLOOR = `UPDATE onceonly_meta SET fence = newest.fence FROM
  (SELECT max(fence) AS fence FROM onceonly_records) AS newest WHERE one = 1 AND newest.fence > onceonly_meta.fence`
const REMOVE = 'DELETE FROM onceonly_records WHERE seq = ? AND gone_at <= ?'
const EMPTY = `UPDATE onceonly_records SET outcome = NULL, pointer = NULL, detail = NULL
  WHERE seq = ? AND expires_at <= ? AND gone_at > ? AND state IN (${stateCode.succeeded}, ${stateCode.failed_terminal})`

/** Past replay, only the fact that the key was used is worth keeping; past its end, nothing. */
function removeOrEmpty({ statements }: Connection, seqs: readonly number[], now: number): number {
  // Once for all of them; else the trigger would raise the floor with every row.
  statements.prepared(RAISE_FLOOR).run()
  let removed = 0
  for (const seq of seqs) {
    if (statements.prepared(REMOVE).run(seq, now).changes === 1) removed += 1
    else statements.prepared(EMPTY).run(seq, now, now)
  }
  return removed
}

const OLD_TALLIES = 'SELECT seq FROM onceonly_tallies WHERE bucket <= ? LIMIT ?'

/** Once per round of the sweep, and bounded like every other step of it. */
async function forgetTallies(engine: Engine, call: Call): Promise<void> {
  const old = await engine.read(call, ({ statements, meta }) => {
    const before = nowOf(meta.read(), engine.time) - limits.tallyKeepMs
    return statements.prepared(OLD_TALLIES).all(before, limits.tallyRows)
  })
  if (old.length === 0) return
  await engine.write('upkeep', call, ({ statements }) => {
    for (const { seq } of old) statements.prepared('DELETE FROM onceonly_tallies WHERE seq = ?').run(Number(seq))
  })
}

const COUNT = 'UPDATE onceonly_records SET replays = replays + ?, conflicts = conflicts + ? WHERE id = ?'

function countOnRecords({ statements }: Connection, records: Tally['records']): void {
  for (const { id, replays, conflicts } of records) statements.prepared(COUNT).run(replays, conflicts, blobOf(id))
}

const COUNT_CALLER = `INSERT INTO onceonly_tallies (bucket, tenant, caller, operation, claims, replays, conflicts)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (bucket, tenant, caller, operation) DO UPDATE SET
    claims = claims + excluded.claims, replays = replays + excluded.replays, conflicts = conflicts + excluded.conflicts`

function countCallers({ statements }: Connection, callers: readonly BusyCaller[], now: number): void {
  const bucket = now - (now % limits.tallyBucketMs)
  for (const { tenant, caller, operation, claims, replays, conflicts } of callers) {
    statements.prepared(COUNT_CALLER).run(bucket, tenant, caller, operation, claims, replays, conflicts)
  }
}

function parsed(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw new OnceError('bad_option', 'The `cursor` is not one of this store.')
}
