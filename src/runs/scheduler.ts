import { SECOND } from '../ledger/core/limits.ts'
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
}

interface DueRow {
  readonly next_at: unknown
  readonly last_run: string | null
  readonly wanted: string | null
  readonly now: unknown
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
        `select next_at, last_run, wanted, ${now} as now from onceonly_run_schedules
          where name = ? and spec = ? and ${due} ${dialect.lock('for update')}`,
        [schedule.name, specOf(schedule)],
      )
      // Another process was faster, it is paused, or newer code has changed it.
      return row === undefined ? { started: [], cancelled: [] } : await tickAll(tx, schedule, row)
    })
  }

  async function tickAll(tx: SqlTx, schedule: Schedule, row: DueRow): Promise<SchedulerRound> {
    const at = Number(row.now)
    const started: RunRow[] = []
    const cancelled: string[] = []
    let last = row.last_run
    let skipped = 0
    const begin = async (id: string, tick: number) => {
      const given = { runId: id, input: schedule.inputAt(new Date(tick)) }
      const queue = schedule.queue === null ? null : queueOf(queues, schedule.queue)
      const run =
        queue === null
          ? newRun(schedule.run, given, { worker: null, now: at })
          : queuedRun(schedule.run, given, queue, at)
      const { text, values } = beginStatement(sql, run)
      // A clock that was put back comes to a tick again: its run is there already.
      if ((await tx.query(text, values)).length > 0) started.push(run)
      last = id
    }
    if (row.wanted !== null) await begin(`schedule:${schedule.name}:${row.wanted}`, at)
    let nextAt = numberOrNull(row.next_at)
    let dueAt: number | null = null
    for (const tick of nextAt === null ? [] : ticksDue(schedule.nextAfter, nextAt, at, schedule.catchUp)) {
      const before = last !== null && (await goesOn(tx, last)) ? last : null
      nextAt = tick
      if (before !== null && schedule.overlap === 'queue') {
        dueAt = at + HOLD_MS
        break
      }
      nextAt = schedule.nextAfter(tick)
      if (before !== null && schedule.overlap === 'skip') {
        skipped += 1
        continue
      }
      if (before !== null && (await runIn(tx, cancelOne(sql, before)))) cancelled.push(before)
      await begin(`schedule:${schedule.name}:${new Date(tick).toISOString()}`, tick)
    }
    // Ticks that are not caught up with are behind us.
    if (dueAt === null && nextAt !== null && nextAt <= at && schedule.catchUp !== 'all') nextAt = schedule.nextAfter(at)
    await tx.query(
      `update onceonly_run_schedules set next_at = ?, due_at = case when paused = 1 then null else ${dialect.place('bigint')} end, last_run = ?,
          wanted = null, started = started + ?, skipped = skipped + ? where name = ?`,
      [nextAt, dueAt ?? nextAt, last, started.length, skipped, schedule.name],
    )
    return { started, cancelled }
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
          on conflict (name) do update set spec = excluded.spec, next_at = excluded.next_at,
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
      if (schedules.size === 0) return { started: [], cancelled: [] }
      const rows = await sql.query<{ name: string }>(
        `select name from onceonly_run_schedules where ${due} and ${mine} order by due_at`,
        [known],
      )
      const rounds: SchedulerRound[] = []
      for (const { name } of rows) {
        const schedule = schedules.get(name)
        if (schedule !== undefined) rounds.push(await handle(schedule))
      }
      return {
        started: rounds.flatMap((round) => round.started),
        cancelled: rounds.flatMap((round) => round.cancelled),
      }
    },
  }
}

/** What decides when it ticks: processes whose code differs in it leave the schedule to each other. */
function specOf({ cron, timezone, overlap, catchUp, run, queue }: Schedule): string {
  return JSON.stringify({ cron, timezone, overlap, catchUp, run: run.name, ...(queue === null ? {} : { queue }) })
}
