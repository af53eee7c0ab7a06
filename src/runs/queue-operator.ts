import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import type { SqlRow, SqlSeam } from '../ledger/store/sql.ts'
import { numberOrNull } from '../ledger/store/sql.ts'
import type { QueueRate } from './queue.ts'
import { RUN_TOPIC } from './tables.ts'

/** A queue as it stands in the store. */
export interface QueueView {
  readonly name: string
  /** Runs at once; null for as many as there are places in processes. */
  readonly concurrency: number | null
  /** Runs of one key at once; null for as many as the queue has. */
  readonly perKey: number | null
  /** Runs that begin within a span; null for as many as there are. */
  readonly rate: QueueRate | null
  /** No run begins until it is resumed; those that have begun continue. */
  readonly paused: boolean
  /** Runs that may begin; from 100 000 on that number. */
  readonly waiting: number
  /** Runs whose keys have no place; from 100 000 on that number. */
  readonly blocked: number
  /** Runs whose time has not come; from 100 000 on that number. */
  readonly delayed: number
  /** Runs that have begun and not ended. */
  readonly running: number
  /** Of those that have begun, runs that wait for an operator: they keep their places. */
  readonly unknown: number
  /** Since when the run waits that is next, in milliseconds since 1970; null when none waits. */
  readonly waitingSince: number | null
}

/** What people ask of queues. */
export interface QueueOperator {
  list(): Promise<readonly QueueView[]>
  /** No run begins until it is resumed; those that have begun continue. */
  pause(name: string): Promise<void>
  resume(name: string): Promise<void>
}

const MOST = limits.countRows

/**
 * The queues with their backlogs, and the store's time. Counting stops at `most`; the run that has waited longest is looked
 * for among as many.
 */
export async function readQueues({ query, now }: Pick<SqlSeam, 'query' | 'now'>, most: number) {
  const some = (column: string, condition: string) =>
    `(select ${column} from onceonly_runs where queue = q.name and ${condition} limit ${most}) as counted`
  const count = (condition: string) => `(select count(*) from ${some('1', condition)})`
  const rows = await query(
    `select q.name, q.concurrency, q.per_key, q.rate_limit, q.rate_ms, q.paused, ${now} as now,
      ${count("place = 'waiting'")} as waiting, ${count("place = 'blocked'")} as blocked,
      ${count("place = 'delayed'")} as delayed, ${count("place = 'admitted' and ended_at is null")} as running,
      ${count("place = 'admitted' and ended_at is null and state = 'unknown'")} as unknown,
      (select min(ready_at) from ${some('ready_at', "place = 'waiting'")}) as since
    from onceonly_run_queues q order by q.name limit ${limits.runQueues}`,
  )
  return { now: Number(rows[0]?.['now'] ?? 0), queues: rows.map(viewOf) }
}

export function createQueueOperator(sql: SqlSeam, near: { wake(): void }): QueueOperator {
  const { query, wake } = sql

  async function set(name: string, paused: number): Promise<void> {
    const text = `update onceonly_run_queues set paused = ? where name = ? returning ${wake(RUN_TOPIC)} as woken`
    if ((await query(text, [paused, name])).length === 0) throw noSuchQueue(name)
    near.wake()
  }

  return {
    list: async () => (await readQueues(sql, MOST)).queues,
    pause: (name) => set(name, 1),
    resume: (name) => set(name, 0),
  }
}

export function noSuchQueue(name: string): OnceError {
  return new OnceError('not_found', `There is no queue ${name}.`, {
    next: 'List the queues; one is entered when an engine that has it begins.',
  })
}

function viewOf(row: SqlRow): QueueView {
  const limit = numberOrNull(row['rate_limit'])
  return {
    name: row['name'] as string,
    concurrency: numberOrNull(row['concurrency']),
    perKey: numberOrNull(row['per_key']),
    rate: limit === null ? null : { limit, perMs: Number(row['rate_ms']) },
    paused: Number(row['paused']) === 1,
    waiting: Number(row['waiting']),
    blocked: Number(row['blocked']),
    delayed: Number(row['delayed']),
    running: Number(row['running']),
    unknown: Number(row['unknown']),
    waitingSince: numberOrNull(row['since']),
  }
}
