import { OnceError } from '../ledger/core/errors.ts'
import type { SqlSeam } from '../ledger/store/sql.ts'
import { numberOrNull } from '../ledger/store/sql.ts'
import { checkId } from './names.ts'
import type { CatchUp, Overlap } from './schedule.ts'
import { createTimes } from './schedule.ts'
import { RUN_TOPIC } from './tables.ts'

/** A schedule as it stands in the store. */
export interface ScheduleView {
  readonly name: string
  /** The definition whose runs it starts. */
  readonly run: string
  readonly cron: string
  readonly timezone: string
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  /** The next tick, in milliseconds since 1970; null when there is none any more. */
  readonly nextAt: number | null
  readonly paused: boolean
  /** The run of its last tick that started one. */
  readonly lastRun: string | null
  /** Why it could not start a run; null since one has started. */
  readonly failure: ScheduleFailure | null
  /** Runs that it started, also those that were triggered. */
  readonly started: number
  /** Ticks that were left out, because the run of the tick before had not ended. */
  readonly skipped: number
}

/** Its `input` threw, or was nothing that can be recorded. */
export interface ScheduleFailure {
  readonly message: string
  /** How often in a row. */
  readonly attempts: number
  /** When it is tried again, in milliseconds since 1970; null for a tick of a schedule that is paused. */
  readonly retryAt: number | null
}

/** What people ask of schedules. */
export interface ScheduleOperator {
  list(): Promise<readonly ScheduleView[]>
  /** No tick starts anything until it is resumed. */
  pause(name: string): Promise<void>
  /** Continues with the next tick from now on; a tick that could not start its run is left out. */
  resume(name: string): Promise<void>
  /**
   * Starts a run now, as soon as a process that has the schedule sees it; also while it is paused. It stands beside the
   * ticks: they neither wait for it nor cancel it. The same `id` again starts nothing. Answers the id of the run.
   */
  trigger(name: string, options?: { readonly id?: string }): Promise<string>
}

interface Row {
  readonly name: string
  readonly spec: string
  readonly next_at: unknown
  readonly paused: unknown
  readonly last_run: string | null
  readonly due_at: unknown
  readonly failure: string | null
  readonly failures: unknown
  readonly started: unknown
  readonly skipped: unknown
}

type Spec = Pick<ScheduleView, 'run' | 'cron' | 'timezone' | 'overlap' | 'catchUp'>

const COLUMNS = 'name, spec, next_at, due_at, paused, last_run, failure, failures, started, skipped'

export function createScheduleOperator(sql: SqlSeam, near: { wake(): void }): ScheduleOperator {
  const { query, now } = sql
  const woken = `${sql.wake(RUN_TOPIC)} as woken`

  async function find(name: string): Promise<ScheduleView> {
    const [row] = await query<Row>(`select ${COLUMNS} from onceonly_run_schedules where name = ?`, [name])
    if (row === undefined) throw noSuchSchedule(name)
    return viewOf(row)
  }

  return {
    async list() {
      const rows = await query<Row>(`select ${COLUMNS} from onceonly_run_schedules order by name`)
      return rows.map(viewOf)
    },
    async pause(name) {
      await find(name)
      // What was triggered and not seen yet starts all the same.
      const due = 'case when wanted is not null then due_at end'
      await query(`update onceonly_run_schedules set paused = 1, due_at = ${due} where name = ?`, [name])
    },
    async resume(name) {
      const { cron, timezone } = await find(name)
      const [row] = await query<{ now: unknown }>(`select ${now} as now`)
      const nextAt = createTimes(cron, timezone)(Number(row?.now))
      await query(
        `update onceonly_run_schedules set paused = 0, next_at = ?, failure = null, failures = 0,
            due_at = case when wanted is not null then ${now} else ${sql.dialect.place('bigint')} end
          where name = ? and paused = 1 returning ${woken}`,
        [nextAt, nextAt, name],
      )
      near.wake()
    },
    async trigger(name, { id = crypto.randomUUID() } = {}) {
      checkId('trigger', id)
      const { failure } = await find(name)
      const runId = `schedule:${name}:${id}`
      const set = await query(
        `update onceonly_run_schedules set wanted = ?, due_at = ${now}
          where name = ? and (wanted is null or wanted = ?) returning ${woken}`,
        [id, name, id],
      )
      if (set.length === 0) {
        throw new OnceError(
          'in_progress',
          `The schedule ${name} was triggered already, and ${failure === null ? 'no process has seen it yet' : 'its run cannot start'}.`,
          {
            next:
              failure === null ? 'Look whether a process that has the schedule is there.' : 'Look at its `failure`.',
          },
        )
      }
      near.wake()
      return runId
    },
  }
}

export function noSuchSchedule(name: string): OnceError {
  return new OnceError('not_found', `There is no schedule ${name}.`, {
    next: 'List the schedules; one is entered when an engine that has it begins.',
  })
}

function viewOf({ name, spec, next_at, paused, last_run: lastRun, started, skipped, ...row }: Row): ScheduleView {
  const { failure: message, failures, due_at } = row
  const counts = { started: Number(started), skipped: Number(skipped) }
  return {
    name,
    ...(JSON.parse(spec) as Spec),
    nextAt: numberOrNull(next_at),
    paused: Number(paused) === 1,
    lastRun,
    failure: message === null ? null : { message, attempts: Number(failures), retryAt: numberOrNull(due_at) },
    ...counts,
  }
}
