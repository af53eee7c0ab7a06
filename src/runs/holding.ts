import { limits } from '../ledger/core/limits.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import { hasEnded } from '../ledger/store/ended.ts'
import { createLeaseSql } from '../ledger/store/leases.ts'
import type { Members } from '../ledger/store/members.ts'
import { createMembers } from '../ledger/store/members.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import { numberOrNull, type SqlValue } from '../ledger/store/sql.ts'
import { ownTransaction } from '../ledger/store/wing-tables.ts'
import type { RunDefinition } from './definition.ts'
import type { Entry, Holder, RunRow, SignalRow } from './entry.ts'
import { asBegun } from './entry.ts'
import { markDue } from './locks.ts'
import { timedOutFailure } from './problems.ts'
import { entryColumns, entryOf, runColumns, runOf, signalOf, TIMED_OUT } from './stored.ts'
import { HAS_DEADLINE, RUN_TOPIC, RUNS, WORKERS } from './tables.ts'
import { IS_STRAY } from './tree.ts'

/** How workers take runs and keep them. Leases belong to workers, fences to runs; time is the store's. */
export interface Holding {
  /** The living workers. */
  readonly workers: Members
  /** Leaves the list of workers, handing over what it still has. */
  depart(worker: string): Promise<void>
  /** What an upkeep looks at, in one read: there is almost never anything. */
  survey(worker: string): Promise<Survey>
  /**
   * Makes the runs of dead workers due. A run that recorded nothing under so many of them in a row is parked instead:
   * answers those.
   */
  freeOrphans(): Promise<readonly ParkedRun[]>
  /** Removes runs that ended long ago, and everything of theirs. */
  sweep(keepMs: number, limit: number): Promise<number>
  /** Puts down runs that it has by the record, and does not drive: an answer was lost on the way. */
  release(runs: readonly Holder[]): Promise<void>
  /**
   * Takes runs that are due. Those of definitions that this process does not know, or knows only as they were before, wait
   * for one that does: a deploy is under way.
   */
  take(worker: string, limit: number): Promise<readonly RunRow[]>
  /**
   * After how many milliseconds a run is due, or has a mark, and when the next one times out; null when none does. A poll of
   * an idle process is one read.
   */
  dueIn(): Promise<{ readonly dueMs: number | null; readonly timeoutMs: number | null }>
  /** Ends runs that took too long, or has them clean up, also those that a worker drives: answers those. */
  timeOut(): Promise<readonly TimedOutRun[]>
  /** Takes a run on its last takeover, one that has been due for so long. */
  takeLast(worker: string, dueForMs: number): Promise<RunRow | null>
  /** The marks that signals and people have left on runs that it has. */
  marks(worker: string): Promise<ReadonlyMap<string, number>>
  signals(runId: string): Promise<readonly SignalRow[]>
  journal(runId: string): Promise<{ readonly entries: readonly Entry[]; readonly signals: readonly SignalRow[] }>
}

export interface Survey {
  /** The fences of the runs that the worker still has. */
  readonly held: ReadonlyMap<string, number>
  /** A worker is past its lease, or a run is without its worker. */
  readonly orphans: boolean
  /** A child is without its parent. */
  readonly strays: boolean
}

export type ParkedRun = Pick<RunRow, 'definition' | 'takeovers'> & { readonly runId: string }

/** `ended`: false while it cleans up after itself. */
export type TimedOutRun = Pick<RunRow, 'definition'> & { readonly runId: string; readonly ended: boolean }

interface HoldingOptions {
  readonly definitions?: Iterable<RunDefinition>
  /** Gets the store's time from every answer that carries it. */
  readonly learn?: (now: number) => void
}

export function createHolding(store: Pick<SqlStore, 'sql' | 'transactions'>, options: HoldingOptions = {}): Holding {
  const { sql } = store
  const { dialect, query, now } = sql
  const { definitions = [], learn = () => {} } = options
  const text = dialect.place('bigint')
  const known = JSON.stringify([...definitions].map(({ name, version }) => ({ name, version })))
  const leases = createLeaseSql(sql, RUNS)
  const workers = createMembers(sql, WORKERS)
  const takeSql = (free: string) =>
    leases.takeText({
      endless: 'NULL',
      free: `${free} and worker is null and state <> 'queued'`,
      which: `exists (select 1 from ${dialect.recordsOf({ name: 'text', version: 'bigint' })}
        where x.name = onceonly_runs.definition and x.version >= onceonly_runs.version)`,
      order: 'due_at',
      // A worker that never put it down may have done something since it took it; the first of them counts.
      set: `state = 'running', taken_before = coalesce(taken_before, taken_at), taken_at = ${now}`,
      returning: runColumns,
    })
  const takeText = takeSql(`due_at <= (select ${now}) and takeovers < ${LAST}`)
  const takeLastText = takeSql(`due_at <= (select ${now}) - ${text} and takeovers > 1 and takeovers = ${LAST}`)

  async function signals(runId: string): Promise<SignalRow[]> {
    const rows = await query(
      'select id, name, number, payload from onceonly_run_signals where run_id = ? order by number, id',
      [runId],
    )
    return rows.map(signalOf)
  }

  async function takeBy(statement: string, values: readonly SqlValue[]): Promise<readonly RunRow[]> {
    const taken = (await query(statement, values)).map(runOf)
    const [first] = taken
    if (first !== undefined && first.takenAt !== null) learn(first.takenAt)
    return taken
  }

  return {
    signals,
    workers,
    release: (runs) => leases.release(runs.map(({ runId: id, fence }) => ({ id, fence }))),
    async depart(worker) {
      await leases.releaseAll(worker)
      await query(`delete from ${WORKERS} where id = ? returning ${sql.wake(RUN_TOPIC)} as woken`, [worker])
    },
    async marks(worker) {
      const rows = await query('select id, due_at from onceonly_runs where worker = ? and due_at is not null', [worker])
      return new Map(rows.map((row) => [row['id'] as string, Number(row['due_at'])]))
    },
    async survey(worker) {
      const lapsed = `select 1 from onceonly_run_workers where lease_until <= (select ${now})`
      const orphan = `select 1 from onceonly_runs where ${IS_ORPHAN}`
      const stray = `select 1 from onceonly_runs where ${IS_STRAY}`
      const rows = await query<{ orphans: unknown; strays: unknown; id: string | null; fence: unknown }>(
        `select seen.orphans, seen.strays, held.id, held.fence
         from (select case when exists (${lapsed}) or exists (${orphan}) then 1 else 0 end as orphans,
             case when exists (${stray}) then 1 else 0 end as strays) as seen
           left join onceonly_runs as held on held.worker = ?`,
        [worker],
      )
      return {
        held: new Map(rows.flatMap(({ id, fence }) => (id === null ? [] : [[id, Number(fence)] as const]))),
        orphans: Number(rows[0]?.orphans) === 1,
        strays: Number(rows[0]?.strays) === 1,
      }
    },
    async freeOrphans() {
      // The worker's row goes first: from then on it cannot renew. Then the runs without a worker are free.
      await workers.removeLapsed()
      const freed = await query<{ id: string; definition: string; takeovers: unknown }>(
        `update onceonly_runs set worker = null, fence = fence + 1, takeovers = ${TAKEOVERS},
            due_at = case when ${IS_POISON} then null else ${now} end,
            state = case when ${IS_POISON} then 'unknown' else state end,
            failure = case when ${IS_POISON} then ${dialect.place('text')} else failure end
          where ${IS_ORPHAN} returning id, definition, takeovers`,
        [JSON.stringify(parkedFailure())],
      )
      return freed
        .map(({ id: runId, definition, takeovers }) => ({ runId, definition, takeovers: Number(takeovers) }))
        .filter(({ takeovers }) => takeovers >= limits.runTakeovers)
    },
    async sweep(keepMs, limit) {
      if (!(await hasEnded(sql, { table: RUNS.table, column: 'ended_at' }, keepMs))) return 0
      return ownTransaction(store, async (tx) => {
        // The run goes first: an operator may be resuming it, and then nothing of it goes. All of it goes at once.
        // A parent that continues may still have to read how its child ended.
        const old = `ended_at < ${now} - ${text} and (parent is null or not exists (select 1 from onceonly_runs p
          where p.id = onceonly_runs.parent and p.ended_at is null))`
        const gone = await tx.query<{ id: string }>(
          `delete from onceonly_runs where id in (select id from onceonly_runs where ${old} order by ended_at limit ?)
            and ${old} returning id`,
          [keepMs, limit, keepMs],
        )
        if (gone.length === 0) return 0
        const ids = JSON.stringify(gone.map(({ id }) => ({ id })))
        const these = `(select id from ${dialect.recordsOf({ id: 'text' })})`
        await tx.query(`delete from onceonly_run_steps where run_id in ${these}`, [ids])
        await tx.query(`delete from onceonly_run_signals where run_id in ${these}`, [ids])
        await tx.query(`delete from onceonly_run_attributes where run_id in ${these}`, [ids])
        return gone.length
      })
    },
    async take(worker, limit) {
      return takeBy(takeText, [worker, known, limit])
    },
    async dueIn() {
      const [row] = await query<{ due: unknown; timeout: unknown }>(
        `with clock as materialized (select ${now} as now)
         select (select due_at from onceonly_runs where due_at is not null order by due_at limit 1) - now as due,
          (select deadline_at from onceonly_runs where ${HAS_DEADLINE} order by deadline_at limit 1) - now as timeout
         from clock`,
      )
      return { dueMs: numberOrNull(row?.due), timeoutMs: numberOrNull(row?.timeout) }
    },
    async timeOut() {
      const next = `select id from onceonly_runs where ${HAS_DEADLINE} and deadline_at <= (select ${now})
        order by deadline_at limit ${limits.runTake} ${dialect.lock('for update of onceonly_runs skip locked')}`
      // One that declared clean-ups is due for a worker, and fails behind them.
      const text = `update onceonly_runs set worker = null, fence = fence + 1, deadline_at = null,
          state = case when cleans = 1 then 'running' else 'failed' end,
          failure = case when cleans = 1 then null else ${dialect.place('text')} end,
          ended_at = case when cleans = 1 then null else ${now} end, due_at = case when cleans = 1 then ${now} end,
          cancelled_at = case when cleans = 1 then ${now} end, cleans = case when cleans = 1 then ${TIMED_OUT} else 0 end
        where ${dialect.isAnyOf('id', next)}
        returning id, definition, parent, ended_at,
          case when queue is not null or ended_at is null then ${sql.wake(RUN_TOPIC)} end as woken`
      return sql.script(function* () {
        const late = yield { text, values: [JSON.stringify(timedOutFailure())] }
        const parents = late.flatMap(({ parent, ended_at }) =>
          ended_at === null ? [] : ((parent as string | null) ?? []),
        )
        if (parents.length > 0) yield markDue(sql, parents)
        return late.map(({ id, definition, ended_at }) => ({
          runId: id as string,
          definition: definition as string,
          ended: ended_at !== null,
        }))
      })
    },
    async takeLast(worker, dueForMs) {
      const [taken] = await takeBy(takeLastText, [worker, dueForMs, known, 1])
      return taken ?? null
    },
    async journal(runId) {
      const names = Object.keys(entryColumns).join(', ')
      const entries = await query(`select ${names} from onceonly_run_steps where run_id = ? order by position`, [runId])
      return { entries: entries.map(entryOf).map(asBegun), signals: await signals(runId) }
    },
  }
}

/** One more, and the run is parked: then it is driven alone, so that no other run is counted with it. */
const LAST = limits.runTakeovers - 1

const IS_ORPHAN = `worker is not null
  and not exists (select 1 from onceonly_run_workers w where w.id = onceonly_runs.worker)`

/** Since the last recorded step. A run that sleeps or waits was put down in order, which clears it. */
const TAKEOVERS = `(case when exists (select 1 from onceonly_run_steps s where s.run_id = onceonly_runs.id
  and s.at >= onceonly_runs.taken_at and s.state in ('succeeded', 'failed', 'abandoned')) then 1 else takeovers + 1 end)`
const IS_POISON = `${TAKEOVERS} >= ${limits.runTakeovers}`

function parkedFailure(): Failure {
  const message = `${limits.runTakeovers} workers in a row ended while they drove this run, and nothing was recorded in between. Find out what ends them; then \`resume\` the run, or \`cancel\` it.`
  return { name: 'Error', code: 'run_parked', message }
}
