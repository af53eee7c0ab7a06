import { limits } from '../ledger/core/limits.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import type { Dialect, SqlValue } from '../ledger/store/sql.ts'
import type { RunDefinition } from './definition.ts'
import type { Entry, Holder, RunRow, SignalRow } from './entry.ts'
import { numberOf, recordsOf } from './rows.ts'
import { entryColumns, entryOf, runColumns, runOf, signalOf } from './stored.ts'

/** How workers take runs and keep them. Leases belong to workers, fences to runs; time is the store's. */
export interface Holding {
  /** Enters the list of living workers. */
  arrive(worker: string, leaseMs: number): Promise<void>
  /** Stays in the list. False when others thought that it was dead, and have its runs. */
  beat(worker: string, leaseMs: number): Promise<boolean>
  /** Leaves the list, handing over what it still has. */
  depart(worker: string): Promise<void>
  /** The fences of the runs that it still has. */
  held(worker: string): Promise<ReadonlyMap<string, number>>
  /**
   * Makes the runs of dead workers due. A run that recorded nothing under so many of them in a row is parked instead:
   * answers those.
   */
  freeOrphans(): Promise<readonly ParkedRun[]>
  /** Removes runs that ended long ago, and everything of theirs. */
  sweep(keepMs: number, limit: number): Promise<number>
  /** Puts down runs that it has by the record, and does not drive: an answer was lost on the way. */
  release(worker: string, runs: readonly Holder[]): Promise<void>
  /**
   * Takes runs that are due; nobody else has them from here on. Those of definitions that this process does not know, or
   * knows only as they were before, wait for one that does: a deploy is under way.
   */
  take(worker: string, limit: number): Promise<readonly RunRow[]>
  /** Takes a run on its last takeover, one that has been due for so long. */
  takeLast(worker: string, dueForMs: number): Promise<RunRow | null>
  /** The marks that signals and people have left on runs that it has. */
  marks(worker: string): Promise<ReadonlyMap<string, number>>
  signals(runId: string): Promise<readonly SignalRow[]>
  journal(runId: string): Promise<{ readonly entries: readonly Entry[]; readonly signals: readonly SignalRow[] }>
}

export type ParkedRun = Pick<RunRow, 'definition' | 'takeovers'> & { readonly runId: string }

interface HoldingOptions {
  readonly definitions?: Iterable<RunDefinition>
  /** Told the store's time wherever it comes for nothing. */
  readonly learn?: (now: number) => void
}

export function createHolding(
  { sql, transactions }: Pick<SqlStore, 'sql' | 'transactions'>,
  options: HoldingOptions = {},
): Holding {
  const { dialect, query, now } = sql
  const { definitions = [], learn = () => {} } = options
  const text = dialect === 'postgres' ? '?::bigint' : '?'
  const known = JSON.stringify([...definitions].map(({ name, version }) => ({ name, version })))
  const takeText = takeSql(dialect, `due_at <= ${now} and takeovers < ${LAST}`, now)
  const takeLastText = takeSql(dialect, `due_at <= ${now} - ${text} and takeovers > 1 and takeovers = ${LAST}`, now)

  async function signals(runId: string): Promise<SignalRow[]> {
    const rows = await query(
      'select id, name, number, payload from onceonly_run_signals where run_id = ? order by number, id',
      [runId],
    )
    return rows.map(signalOf)
  }

  async function takeBy(statement: string, worker: string, which: readonly SqlValue[]): Promise<readonly RunRow[]> {
    const values = dialect === 'postgres' ? [...which, worker] : [worker, ...which]
    const taken = (await query(statement, values)).map(runOf)
    const [first] = taken
    if (first !== undefined && first.takenAt !== null) learn(first.takenAt)
    return taken
  }

  return {
    signals,
    async release(worker, runs) {
      const records = runs.map(({ runId: id, fence }) => ({ id, fence }))
      await query(
        `update onceonly_runs set due_at = ${now}, worker = null, fence = fence + 1 where worker = ? and id in (select x.id
          from ${recordsOf(dialect, { id: 'text', fence: 'bigint' })} where x.id = onceonly_runs.id and x.fence = onceonly_runs.fence)`,
        [worker, JSON.stringify(records)],
      )
    },
    async arrive(worker, leaseMs) {
      await query(`insert into onceonly_run_workers (id, lease_until) values (?, ${now} + ${text})`, [worker, leaseMs])
    },
    async beat(worker, leaseMs) {
      const rows = await query(
        `update onceonly_run_workers set lease_until = ${now} + ${text} where id = ? returning id`,
        [leaseMs, worker],
      )
      return rows.length > 0
    },
    async depart(worker) {
      await query(`update onceonly_runs set due_at = ${now}, worker = null, fence = fence + 1 where worker = ?`, [
        worker,
      ])
      await query('delete from onceonly_run_workers where id = ?', [worker])
    },
    async held(worker) {
      const rows = await query('select id, fence from onceonly_runs where worker = ?', [worker])
      return new Map(rows.map((row) => [row['id'] as string, numberOf(row['fence'])]))
    },
    async marks(worker) {
      const rows = await query('select id, due_at from onceonly_runs where worker = ? and due_at is not null', [worker])
      return new Map(rows.map((row) => [row['id'] as string, numberOf(row['due_at'])]))
    },
    async freeOrphans() {
      // The worker's row goes first: from then on it cannot believe that it lives. Then whoever has no worker is free.
      await query(`delete from onceonly_run_workers where lease_until < ${now}`)
      const freed = await query<{ id: string; definition: string; takeovers: unknown }>(
        `update onceonly_runs set worker = null, fence = fence + 1, takeovers = ${TAKEOVERS},
            due_at = case when ${IS_POISON} then null else ${now} end,
            state = case when ${IS_POISON} then 'unknown' else state end,
            failure = case when ${IS_POISON} then ${dialect === 'postgres' ? '?::text' : '?'} else failure end
          where worker is not null and not exists (select 1 from onceonly_run_workers w where w.id = onceonly_runs.worker)
          returning id, definition, takeovers`,
        [JSON.stringify(parkedFailure())],
      )
      return freed
        .map(({ id: runId, definition, takeovers }) => ({ runId, definition, takeovers: numberOf(takeovers) }))
        .filter(({ takeovers }) => takeovers >= limits.runTakeovers)
    },
    async sweep(keepMs, limit) {
      const call = { timeoutMs: limits.storeCallMs, lockMs: limits.transactionLockMs, refuseTwinOf: null }
      return transactions.run(async ({ tx }) => {
        // The run goes first: somebody may be resuming it, and then nothing of it goes. All of it goes at once.
        const old = `ended_at < ${now} - ${text}`
        const gone = await tx.query<{ id: string }>(
          `delete from onceonly_runs where id in (select id from onceonly_runs where ${old} order by ended_at limit ?)
            and ${old} returning id`,
          [keepMs, limit, keepMs],
        )
        if (gone.length === 0) return 0
        const ids = JSON.stringify(gone.map(({ id }) => ({ id })))
        const these = `(select id from ${recordsOf(dialect, { id: 'text' })})`
        await tx.query(`delete from onceonly_run_steps where run_id in ${these}`, [ids])
        await tx.query(`delete from onceonly_run_signals where run_id in ${these}`, [ids])
        return gone.length
      }, call)
    },
    async take(worker, limit) {
      return takeBy(takeText, worker, [known, limit])
    },
    async takeLast(worker, dueForMs) {
      const [taken] = await takeBy(takeLastText, worker, [dueForMs, known, 1])
      return taken ?? null
    },
    async journal(runId) {
      const names = Object.keys(entryColumns).join(', ')
      const entries = await query(`select ${names} from onceonly_run_steps where run_id = ? order by position`, [runId])
      return { entries: entries.map(entryOf), signals: await signals(runId) }
    },
  }
}

/** One more, and the run is parked: then it is driven alone, so that no other run is counted with it. */
const LAST = limits.runTakeovers - 1

/** Since the last recorded step. A run that sleeps or waits was put down in order, which clears it. */
const TAKEOVERS = `(case when exists (select 1 from onceonly_run_steps s where s.run_id = onceonly_runs.id
  and s.at >= onceonly_runs.taken_at and s.state in ('succeeded', 'failed', 'abandoned')) then 1 else takeovers + 1 end)`
const IS_POISON = `${TAKEOVERS} >= ${limits.runTakeovers}`

function parkedFailure(): Failure {
  const message = `${limits.runTakeovers} workers in a row ended while they drove this run, and nothing was recorded in between. Find out what ends them; then \`resume\` the run, or \`cancel\` it.`
  return { name: 'Error', code: 'run_parked', message }
}

/** On PostgreSQL the choice stands apart, so that it is made once: a plan may repeat a subquery, and take too many. */
function takeSql(dialect: Dialect, isWanted: string, now: string): string {
  const due = `select id from onceonly_runs where ${isWanted} and worker is null and exists (select 1
      from ${recordsOf(dialect, { name: 'text', version: 'bigint' })}
      where x.name = onceonly_runs.definition and x.version >= onceonly_runs.version) order by due_at limit ?`
  // Whoever never put it down may have done something since it took it; the first of them counts.
  const change = `update onceonly_runs set worker = ?, fence = fence + 1, due_at = null, state = 'running',
      taken_before = coalesce(taken_before, taken_at), taken_at = ${now}`
  const answer = `returning ${runColumns}`
  if (dialect === 'sqlite') return `${change} where id in (${due}) ${answer}`
  const chosen = `with due as materialized (${due} for update of onceonly_runs skip locked)`
  return `${chosen} ${change} where id in (select id from due) ${answer}`
}
