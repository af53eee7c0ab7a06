import { decodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { checkOptions, wholeOption } from '../ledger/core/option-names.ts'
import type { SqlSeam } from '../ledger/store/sql.ts'
import type { RunState } from './entry.ts'

/** What a run emitted. */
export interface RunOutput {
  /** Its place among the events of the run: give it back as `after`. */
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
  readonly state: RunState
  /** The run has ended, and nothing comes behind this page. */
  readonly ended: boolean
}

export interface OutputQuery {
  /** The `cursor` of the last event that was read. @default 0, from the first event on */
  readonly after?: number
  /** Events of one page. @default 200 */
  readonly limit?: number
}

/** Reads what a run emitted. An event is visible no earlier than all that come before it. */
export async function readOutputs({ query }: SqlSeam, runId: string, given: OutputQuery = {}): Promise<OutputPage> {
  checkOptions('`events`', given, { after: true, limit: true })
  const { after = 0, limit = limits.pageRows } = given
  wholeOption('`events`', 'after', after, 0)
  wholeOption('`events`', 'limit', limit, 1, limits.pageRows)
  // The state comes first: of a run that had ended then, everything is there.
  const [run] = await query('select state, ended_at from onceonly_runs where id = ?', [runId])
  if (run === undefined) {
    throw new OnceError('not_found', `There is no run ${runId}.`, { next: 'Check the `runId`.', details: { runId } })
  }
  const rows = await query(
    `select position, step_id, plan, at from onceonly_run_steps
      where run_id = ? and kind = 'event' and position >= ? order by position limit ?`,
    [runId, after, limit],
  )
  const events = rows.map((row): RunOutput => {
    const path = row['step_id'] as string
    return {
      cursor: Number(row['position']) + 1,
      name: path.slice(path.lastIndexOf('/') + 1),
      value: decodeValue(row['plan'] as string),
      at: Number(row['at']),
    }
  })
  const cursor = events.at(-1)?.cursor ?? after
  return { events, cursor, state: run['state'] as RunState, ended: run['ended_at'] !== null && rows.length < limit }
}
