import { decodeValue } from '../ledger/core/codec.ts'
import { limits } from '../ledger/core/limits.ts'
import { checkOptions, wholeOption } from '../ledger/core/option-names.ts'
import type { SqlSeam } from '../ledger/store/sql.ts'
import type { RunState } from './entry.ts'
import { noSuchRun } from './problems.ts'

/** What a run emitted. */
export interface RunOutput {
  /** Its place among the events of the run, and of those that continue it: give it back as `after`. */
  readonly cursor: number
  readonly name: string
  readonly value: unknown
  /** When it was recorded, in milliseconds since 1970. */
  readonly at: number
}

export interface OutputPage {
  /** In the order in which the run emitted them. */
  readonly events: readonly RunOutput[]
  /** Where the next page begins. */
  readonly cursor: number
  /** The run that emitted them: the one that was named, or one that continues it. */
  readonly runId: string
  /** The state of that run. */
  readonly state: RunState
  /** The last of the runs that continue it has ended, and nothing comes behind this page. */
  readonly ended: boolean
}

export interface OutputQuery {
  /** The `cursor` of the last event that was read. @default 0, from the first event on */
  readonly after?: number
  /** Events of one page. @default 200 */
  readonly limit?: number
}

/** A cursor counts the runs that continue the first one in these, and places in their journals below. */
const GENERATION = 1_000_000

/**
 * Reads what a run emitted, and then what those emitted that continue it: of one run at a time. An event is visible no earlier
 * than all that come before it.
 */
export async function readOutputs(sql: SqlSeam, runId: string, given: OutputQuery = {}): Promise<OutputPage> {
  checkOptions('`events`', given, { after: true, limit: true })
  const { after = 0, limit = limits.pageRows } = given
  wholeOption('`events`', 'after', after, 0)
  wholeOption('`events`', 'limit', limit, 1, limits.pageRows)
  for (let from = after; ; from = (Math.floor(from / GENERATION) + 1) * GENERATION) {
    const page = await readGeneration(sql, runId, from, limit)
    if (page !== 'behind it') return page
  }
}

/** Of the run that the cursor is in. */
async function readGeneration(
  { query }: SqlSeam,
  runId: string,
  after: number,
  limit: number,
): Promise<OutputPage | 'behind it'> {
  // The state comes first: of a run that had ended then, everything is there.
  const [run] = await query(
    `with recursive line (id, state, ended_at, continued_as, generation) as (
        select id, state, ended_at, continued_as, 0 from onceonly_runs where id = ?
        union all select r.id, r.state, r.ended_at, r.continued_as, generation + 1
          from line join onceonly_runs r on r.id = line.continued_as where generation < ?
      ) select * from line order by generation desc limit 1`,
    [runId, Math.floor(after / GENERATION)],
  )
  if (run === undefined) throw noSuchRun(runId)
  const first = Number(run['generation']) * GENERATION
  const rows = await query(
    `select position, step_id, plan, at from onceonly_run_steps
      where run_id = ? and kind = 'event' and position >= ? order by position limit ?`,
    [run['id'] as string, after - first, limit],
  )
  const isOver = run['ended_at'] !== null && rows.length < limit
  if (isOver && rows.length === 0 && run['continued_as'] !== null) return 'behind it'
  const events = rows.map((row): RunOutput => {
    const path = row['step_id'] as string
    return {
      cursor: first + Number(row['position']) + 1,
      name: path.slice(path.lastIndexOf('/') + 1),
      value: decodeValue(row['plan'] as string),
      at: Number(row['at']),
    }
  })
  return {
    events,
    cursor: events.at(-1)?.cursor ?? after,
    runId: run['id'] as string,
    state: run['state'] as RunState,
    ended: isOver && run['continued_as'] === null,
  }
}
