import { OnceError } from '../ledger/core/errors.ts'
import { MINUTE, SECOND } from '../ledger/core/limits.ts'
import { backoffMs } from '../ledger/core/retry.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import { runIn } from '../ledger/store/script.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import { numberOrNull } from '../ledger/store/sql.ts'
import { ownTransaction } from '../ledger/store/wing-tables.ts'
import { cancelOne } from './cancel.ts'
import type { RunRow } from './entry.ts'
import { newRun } from './new-run.ts'
import { type Queue, queueOf } from './queue.ts'
import { beginStatement, queuedRun } from './queued.ts'
import type { Schedule } from './schedule.ts'
import { ticksDue } from './ticks.ts'

/** How often a tick that waits for the end of another run looks for it. */
const HOLD_MS = 5 * SECOND
/** A run that cannot start is tried again after this, which doubles: newer code may be about to come. */
const RETRY = { baseMs: 1 * SECOND, capMs: 5 * MINUTE }
/** A reason is shown in a list. */
const MESSAGE_CHARS = 1_000

/** Starts the runs of schedules whose time has come. */
export interface Scheduler {
  /** Enters the schedules of this process. A schedule that was changed continues from now on. */
  register(): Promise<void>
  /** After how many milliseconds the next of them is due; null when none is. */
  dueIn(): Promise<number | null>
  /** Handles what is due; the runs that it started are due themselves. */
  start(): Promise<SchedulerRound>
}

interface SchedulerRound {
  readonly started: readonly RunRow[]
  /** Runs that were cancelled for the next one. */
  readonly cancelled: readonly string[]
  /** Why a schedule could not start a run; it is tried again later. */
  readonly failed: readonly unknown[]
}

const NOTHING: SchedulerRound = { started: [], cancelled: [], failed: [] }

interface DueRow {
  readonly next_at: unknown
  readonly last_run: string | null
  readonly wanted: string | null
  readonly paused: unknown
  readonly failures: unknown
  readonly now: unknown
}

/** One schedule, in one transaction. */
interface Turn {
  readonly schedule: Schedule
  readonly row: DueRow
  readonly at: number
  readonly started: RunRow[]
  readonly cancelled: string[]
  /** Its application could not give an input. */
  problem: OnceError | null
}

interface Passed {
  readonly nextAt: number | null
  readonly dueAt: number | null
  readonly last: string | null
  readonly skipped: number
}

export function createScheduler(
  store: Pick<SqlStore, 'sql' | 'transactions'>,
  schedules: ReadonlyMap<string, Schedule>,
  queues: ReadonlyMap<string, Queue>,
): Scheduler {
  const { sql } = store
  const { dialect, now } = sql
  const known = JSON.stringify([...schedules.values()].map((each) => ({ name: each.name, spec: specOf(each) })))
  const mine = `exists (select 1 from ${dialect.recordsOf({ name: 'text', spec: 'text' })}
    where x.name = onceonly_run_schedules.name and x.spec = onceonly_run_schedules.spec)`
  const due = `due_at <= (select ${now})`

  async function handle(schedule: Schedule): Promise<SchedulerRound> {
    return ownTransaction(store, async (tx) => {
      const [row] = await tx.query<DueRow>(
        `select next_at, last_run, wanted, paused, failures, ${now} as now from onceonly_run_schedules
          where name = ? and spec = ? and ${due} ${dialect.lock('for update')}`,
        [schedule.name, specOf(schedule)],
      )
      // Another process was faster, it is paused, or newer code has changed it.
      if (row === undefined) return NOTHING
      const turn: Turn = { schedule, row, at: Number(row.now), started: [], cancelled: [], problem: null }
      await take(tx, turn)
      const { started, cancelled, problem } = turn
      return { started, cancelled, failed: problem === null ? [] : [problem] }
    })
  }

  async function take(tx: SqlTx, turn: Turn): Promise<void> {
    const { schedule, row, at, started } = turn
    // What was triggered stands beside the ticks: it is not the run of the tick before.
    const wanted = row.wanted !== null && (await begin(tx, turn, row.wanted, at)) === null ? row.wanted : null
    const { nextAt, dueAt, last, skipped } = Number(row.paused) === 1 ? restOf(row) : await passTicks(tx, turn)
    const times = [dueAt, wanted === null ? null : retryAt(turn)].flatMap((time) => time ?? [])
    const { problem } = turn
    const failed = problem === null ? [] : [sql.secret(problem.message.slice(0, MESSAGE_CHARS))]
    const outcome = problem === null ? 'failure = null, failures = 0' : 'failure = ?, failures = failures + 1'
    await tx.query(
      `update onceonly_run_schedules set next_at = ?, due_at = ?, last_run = ?, wanted = ?,
          started = started + ?, skipped = skipped + ?${problem === null && started.length === 0 ? '' : `, ${outcome}`}
        where name = ?`,
      [
        nextAt,
        times.length === 0 ? null : Math.min(...times),
        last,
        wanted,
        started.length,
        skipped,
        ...failed,
        schedule.name,
      ],
    )
  }

  /** Starts what is due of the ticks, until one of them has to wait. */
  async function passTicks(tx: SqlTx, turn: Turn): Promise<Passed> {
    const { schedule, row, at, cancelled } = turn
    const first = numberOrNull(row.next_at)
    let [last, nextAt, skipped] = [row.last_run, first, 0]
    for (const tick of first === null ? [] : ticksDue(schedule.nextAfter, first, at, schedule.catchUp)) {
      const before = last !== null && (await goesOn(tx, last)) ? last : null
      if (before !== null && schedule.overlap === 'queue') return { nextAt: tick, dueAt: at + HOLD_MS, last, skipped }
      if (before !== null && schedule.overlap === 'skip') skipped += 1
      else {
        const id = await begin(tx, turn, new Date(tick).toISOString(), tick)
        if (id === null) return { nextAt: tick, dueAt: retryAt(turn), last, skipped }
        if (before !== null && before !== id && (await runIn(tx, cancelOne(sql, before)))) cancelled.push(before)
        last = id
      }
      nextAt = schedule.nextAfter(tick)
    }
    // Ticks that are not caught up with are behind us.
    if (nextAt !== null && nextAt <= at && schedule.catchUp !== 'all') nextAt = schedule.nextAfter(at)
    return { nextAt, dueAt: nextAt, last, skipped }
  }

  /** The id of the run; null when the application cannot give its input. */
  async function begin(tx: SqlTx, turn: Turn, name: string, tick: number): Promise<string | null> {
    const { schedule, at, started } = turn
    const id = `schedule:${schedule.name}:${name}`
    let run: RunRow
    try {
      run = runAt(schedule, id, tick, at)
    } catch (cause) {
      turn.problem = cannotStart(id, cause)
      return null
    }
    const { text, values } = beginStatement(sql, run)
    // A clock that was put back comes to a tick again: its run is there already.
    if ((await tx.query(text, values)).length > 0) started.push(run)
    return id
  }

  function runAt({ run, queue: wanted, inputAt }: Schedule, runId: string, tick: number, at: number): RunRow {
    const given = { runId, input: inputAt(new Date(tick)) }
    if (wanted === null) return newRun(run, given, { worker: null, now: at })
    return queuedRun(run, given, queueOf(queues, wanted), at)
  }

  async function goesOn(tx: SqlTx, runId: string): Promise<boolean> {
    const rows = await tx.query('select 1 as one from onceonly_runs where id = ? and ended_at is null', [runId])
    return rows.length > 0
  }

  return {
    async register() {
      if (schedules.size === 0) return
      const [row] = await sql.query<{ now: unknown }>(`select ${now} as now`)
      const from = Number(row?.now)
      const records = [...schedules.values()].map((each) => {
        const next_at = each.nextAfter(from)
        return { name: each.name, spec: specOf(each), next_at }
      })
      await sql.query(
        `insert into onceonly_run_schedules (name, spec, next_at, due_at)
          select name, spec, next_at, next_at from ${dialect.recordsOf({ name: 'text', spec: 'text', next_at: 'bigint' })}
          where true order by name
          on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at, failure = null, failures = 0,
            due_at = case when onceonly_run_schedules.paused = 1 then null else excluded.next_at end
          where onceonly_run_schedules.spec <> excluded.spec`,
        [JSON.stringify(records)],
      )
    },
    async dueIn() {
      if (schedules.size === 0) return null
      const [row] = await sql.query<{ due: unknown }>(
        `select min(due_at) - (select ${now}) as due from onceonly_run_schedules where ${mine}`,
        [known],
      )
      return numberOrNull(row?.due)
    },
    async start() {
      if (schedules.size === 0) return NOTHING
      const rows = await sql.query<{ name: string }>(
        `select name from onceonly_run_schedules where ${due} and ${mine} order by due_at`,
        [known],
      )
      const rounds: SchedulerRound[] = []
      for (const schedule of rows.flatMap(({ name }) => schedules.get(name) ?? [])) {
        // One that cannot be handled stops neither the others nor the worker.
        rounds.push(await handle(schedule).catch((error: unknown) => ({ ...NOTHING, failed: [error] })))
      }
      return {
        started: rounds.flatMap((round) => round.started),
        cancelled: rounds.flatMap((round) => round.cancelled),
        failed: rounds.flatMap((round) => round.failed),
      }
    },
  }
}

function restOf({ next_at, last_run: last }: DueRow): Passed {
  return { nextAt: numberOrNull(next_at), dueAt: null, last, skipped: 0 }
}

/** When a run that could not start is tried again. */
function retryAt({ row, at }: Turn): number {
  return at + backoffMs(Number(row.failures) + 1, RETRY, 1)
}

function cannotStart(runId: string, cause: unknown): OnceError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new OnceError('bad_input', `The run ${runId} cannot start, because its schedule gives no input: ${reason}`, {
    cause,
    next: 'Mend the `input` of the schedule; the run is tried again until then.',
    details: { runId },
  })
}

/** What decides when it ticks: processes whose code differs in it leave the schedule to each other. */
function specOf({ cron, timezone, overlap, catchUp, run, queue }: Schedule): string {
  return JSON.stringify({ cron, timezone, overlap, catchUp, run: run.name, ...(queue === null ? {} : { queue }) })
}
