import { limits } from '../ledger/core/limits.ts'
import { createLeaseSql } from '../ledger/store/leases.ts'
import type { SqlStore } from '../ledger/store/port.ts'
import type { Script, SqlRow, SqlValue } from '../ledger/store/sql.ts'
import { numberOrNull } from '../ledger/store/sql.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { RunDefinition } from './definition.ts'
import type { RunRow } from './entry.ts'
import type { Queue } from './queue.ts'
import { QUEUE_ORDER } from './queue-tables.ts'
import { turnText } from './queued.ts'
import { runColumns, runOf } from './stored.ts'
import { RUNS } from './tables.ts'

/*
 * A run of a queue is let in by the worker that has a free place for it, in one transaction under the lock of the queue's
 * row. Nothing else admits, so that what is counted there cannot grow meanwhile; it can only shrink, when runs end. A run has
 * its place until it ends, whichever worker drives it: the place of a dead worker's run comes back with the run.
 */

/** Lets runs of queues begin, within their limits. */
export interface Admission {
  /** Enters the queues of this process; their limits hold from then on, for all processes. */
  register(): Promise<void>
  /** After how many milliseconds a run of a queue may begin; null while that takes another event. One read. */
  dueIn(): Promise<number | null>
  /** Takes at most so many runs for this worker. `more`: what was left may begin at once where there is a place. */
  take(worker: string, most: number): Promise<{ readonly runs: readonly RunRow[]; readonly more: boolean }>
}

interface QueueState {
  readonly name: string
  /** After how many milliseconds one may begin; null while that takes another event. */
  readonly dueMs: number | null
  /** Runs wait whose keys had no place: some may have one by now. */
  readonly blocked: boolean
  /** The time of a delayed run has come. */
  readonly delayed: boolean
  /** It has no limits: then there is nothing to count, and nothing to lock. */
  readonly unlimited: boolean
}

/** The limits of a queue, as its row has them. */
interface Limits {
  readonly perKey: number | null
  /** How many may begin now; infinite without limits. */
  readonly room: number
}

export function createAdmission(
  runtime: Runtime,
  { sql }: Pick<SqlStore, 'sql'>,
  queues: ReadonlyMap<string, Queue>,
  definitions: Iterable<RunDefinition>,
): Admission {
  const { dialect, now, query } = sql
  const names = JSON.stringify([...queues.keys()].map((name) => ({ name })))
  const known = JSON.stringify([...definitions].map(({ name, version }) => ({ name, version })))
  const isKnown = `exists (select 1 from ${dialect.recordsOf({ name: 'text', version: 'bigint' })}
    where x.name = onceonly_runs.definition and x.version >= onceonly_runs.version)`
  /** Queues take turns at the places of this process. */
  let rotation = 0
  /** When a place of a key was last looked for. */
  let soughtAtMs = 0

  const at = `(select ${now})`
  const insideOf = (queue: string) => `(select count(*) from onceonly_runs
    where queue = ${queue} and place = 'admitted' and ended_at is null)`
  /** A clock that was put back leaves times ahead: they count as if they had just been. */
  const span = `admitted_at > ${now} - q.rate_ms and admitted_at < ${now} + q.rate_ms`
  // A run that continues another one has begun with that one.
  const begun = `from onceonly_runs where queue = q.name and admitted_at is not null and continued_as is null and ${span}`
  const counts = `case when q.concurrency is null then 0 else ${insideOf('q.name')} end as inside,
    case when q.rate_limit is null then 0 else (select count(*) ${begun}) end as begun`

  const stateText = `select q.name, q.concurrency, q.per_key, q.rate_limit, ${counts},
      case when q.rate_limit is null then 0 else (select min(admitted_at) ${begun}) + q.rate_ms - ${now} end as rate_in,
      (select min(ready_at) from onceonly_runs where queue = q.name and place = 'delayed') - ${now} as delayed_in,
      case when exists (select 1 from onceonly_runs where queue = q.name and place = 'waiting') then 1 else 0 end as waiting,
      case when exists (select 1 from onceonly_runs where queue = q.name and place = 'blocked') then 1 else 0 end as blocked
    from onceonly_run_queues q
    where q.paused = 0 and q.name in (select x.name from ${dialect.recordsOf({ name: 'text' })})`

  async function states(): Promise<QueueState[]> {
    const rows = await query(stateText, [names])
    return rows.map((row) => {
      const count = (name: string) => Number(row[name])
      const name = row['name'] as string
      const concurrency = numberOrNull(row['concurrency'])
      const rate = numberOrNull(row['rate_limit'])
      const isFull = concurrency !== null && count('inside') >= concurrency
      const rateMs = rate !== null && count('begun') >= rate ? Math.max(count('rate_in'), 0) : 0
      const delayedMs = numberOrNull(row['delayed_in'])
      const blocked = count('blocked') === 1
      const times = [delayedMs, count('waiting') === 1 ? 0 : null, blocked ? unseenMs() : null]
      const nextMs = Math.min(...times.map((ms) => ms ?? Number.POSITIVE_INFINITY))
      const dueMs = isFull || nextMs === Number.POSITIVE_INFINITY ? null : Math.max(nextMs, rateMs)
      const unlimited = concurrency === null && rate === null && row['per_key'] === null
      const delayed = delayedMs !== null && delayedMs <= 0
      return { name, dueMs, blocked: blocked && !isFull && rateMs === 0, delayed, unlimited }
    })
  }

  /** The worker whose run ends looks who is next of its key. It may die before it does. */
  function unseenMs(): number {
    return Math.max(0, soughtAtMs + limits.runQueueSeekMs - runtime.monotonicMs())
  }

  /** One transaction of one queue. */
  function* admit(
    { name, blocked }: QueueState,
    worker: string,
    most: number,
  ): Script<{ runs: RunRow[]; more: boolean }> {
    const found = yield* limitsOf(name)
    if (found === null) return { runs: [], more: false }
    yield* wakeDelayed(name)
    if (found.perKey !== null) yield* unblock(name, found.perKey)
    else if (blocked) yield* unblockAll(name)
    const wanted = Math.min(most, found.room)
    const runs: RunRow[] = []
    for (let round = 0; round < limits.runQueueRounds && runs.length < wanted; round++) {
      const heads = yield* waiting(name, wanted - runs.length)
      if (heads.length === 0) return { runs, more: false }
      const { fits, full } =
        found.perKey === null ? { fits: heads, full: [] } : yield* withPlace(name, found.perKey, heads)
      runs.push(...(yield* letIn(fits, worker)))
      if (full.length > 0) yield* block(name, full)
    }
    return { runs, more: found.room > runs.length }
  }

  /** Locks the queue, and counts afterwards: what another worker admitted meanwhile is seen. */
  function* limitsOf(name: string): Script<Limits | null> {
    const lock = `select name from onceonly_run_queues where name = ? and paused = 0 ${dialect.lock('for update')}`
    if ((yield { text: lock, values: [name] }).length === 0) return null
    const text = `select q.concurrency, q.per_key, q.rate_limit, ${counts} from onceonly_run_queues q where q.name = ?`
    const [row] = yield { text, values: [name] }
    if (row === undefined) return null
    const left = (limit: string, used: string) =>
      (numberOrNull(row[limit]) ?? Number.POSITIVE_INFINITY) - Number(row[used])
    const room = Math.max(Math.min(left('concurrency', 'inside'), left('rate_limit', 'begun')), 0)
    return { perKey: numberOrNull(row['per_key']), room }
  }

  function* wakeDelayed(name: string): Script<void> {
    const text = `update onceonly_runs set place = 'waiting', turn = ${turnText('onceonly_runs')} + d.behind
      from (select id, row_number() over (partition by queue_key, priority order by ready_at, id) - 1 as behind
        from (select id, queue_key, priority, ready_at from onceonly_runs
          where queue = ? and place = 'delayed' and ready_at <= ${at} order by ready_at limit ${limits.runQueueRows}) as ready
      ) as d where onceonly_runs.id = d.id and onceonly_runs.place = 'delayed' returning onceonly_runs.id`
    yield { text, values: [name] }
  }

  /** Keys of which runs have ended meanwhile: as many as they have places for wait again. */
  function* unblock(name: string, perKey: number): Script<void> {
    const next = (more: string) =>
      `(select min(queue_key) from onceonly_runs where queue = ? and place = 'blocked'${more})`
    const keys = `with recursive k (queue_key) as (select ${next('')}
        union all select ${next(' and onceonly_runs.queue_key > k.queue_key')} from k where k.queue_key is not null)
      select queue_key, (select count(*) from onceonly_runs
        where queue = ? and place = 'admitted' and ended_at is null and onceonly_runs.queue_key = k.queue_key) as inside
      from k where queue_key is not null`
    for (const row of yield { text: keys, values: [name, name, name] }) {
      const free = perKey - Number(row['inside'])
      if (free <= 0) continue
      const first = `select id from onceonly_runs where queue = ? and queue_key = ? and place = 'blocked'
        order by ${QUEUE_ORDER} limit ?`
      const text = `update onceonly_runs set place = 'waiting' where ${dialect.isAnyOf('id', first)} returning id`
      yield { text, values: [name, row['queue_key'] as SqlValue, free] }
    }
  }

  /** Its keys have no limit any more. */
  function* unblockAll(name: string): Script<void> {
    const some = `select id from onceonly_runs where queue = ? and place = 'blocked' limit ${limits.runQueueRows}`
    yield {
      text: `update onceonly_runs set place = 'waiting' where ${dialect.isAnyOf('id', some)} returning id`,
      values: [name],
    }
  }

  function* waiting(name: string, most: number): Script<readonly SqlRow[]> {
    const text = `select id, queue_key from onceonly_runs
      where queue = ? and place = 'waiting' and ended_at is null and ${isKnown} order by ${QUEUE_ORDER} limit ?`
    return yield { text, values: [name, known, most] }
  }

  const isOneOf = `queue_key in (select x.key from ${dialect.recordsOf({ key: 'text' })})`
  const listed = (keys: Iterable<unknown>) => JSON.stringify([...keys].map((key) => ({ key })))

  /** Those whose keys have places, best first; and the keys that have none. */
  function* withPlace(
    name: string,
    perKey: number,
    heads: readonly SqlRow[],
  ): Script<{ fits: readonly SqlRow[]; full: readonly unknown[] }> {
    const text = `select queue_key, count(*) as inside from onceonly_runs
      where queue = ? and place = 'admitted' and ended_at is null and ${isOneOf} group by queue_key`
    const counted = yield { text, values: [name, listed(new Set(heads.map((row) => row['queue_key'])))] }
    const inside = new Map(counted.map((row) => [row['queue_key'], Number(row['inside'])]))
    const full = new Set<unknown>()
    const fits = heads.filter(({ queue_key: key }) => {
      const count = inside.get(key) ?? 0
      if (count >= perKey) full.add(key)
      else inside.set(key, count + 1)
      return count < perKey
    })
    return { fits, full: [...full] }
  }

  /** Keys without a place are out of the way until one of their runs has ended. */
  function* block(name: string, keys: readonly unknown[]): Script<void> {
    const theirs = `select id from onceonly_runs
      where queue = ? and turn is not null and place = 'waiting' and ${isOneOf} limit ${limits.runQueueRows}`
    const text = `update onceonly_runs set place = 'blocked' where ${dialect.isAnyOf('id', theirs)} returning id`
    yield { text, values: [name, listed(keys)] }
  }

  const lettingIn = `place = 'admitted', turn = null, admitted_at = ${at}, state = 'running',
    taken_before = coalesce(taken_before, taken_at), taken_at = ${at}, deadline_at = case when cancelled_at is null then ${at} + timeout_ms end`
  const freelyText = createLeaseSql(sql, RUNS).takeText({
    endless: 'NULL',
    free: `queue = ? and place = 'waiting' and ended_at is null and exists (select 1 from onceonly_run_queues q
      where q.name = onceonly_runs.queue and q.paused = 0
        and q.concurrency is null and q.per_key is null and q.rate_limit is null)`,
    which: isKnown,
    order: QUEUE_ORDER,
    set: lettingIn,
    returning: runColumns,
  })

  async function takeFreely(name: string, worker: string, most: number): Promise<{ runs: RunRow[]; more: boolean }> {
    const runs = (await query(freelyText, [worker, name, known, most])).map(runOf)
    return { runs, more: runs.length === most }
  }

  /** A run that was cancelled meanwhile stays out. The time is later than the ends that were counted. */
  function* letIn(heads: readonly SqlRow[], worker: string): Script<readonly RunRow[]> {
    if (heads.length === 0) return []
    const rows = yield {
      text: `update onceonly_runs set worker = ?, fence = fence + 1, due_at = null, ${lettingIn}
        where id in (select x.id from ${dialect.recordsOf({ id: 'text' })}) and place = 'waiting' and ended_at is null
        returning ${runColumns}`,
      values: [worker, JSON.stringify(heads.map(({ id }) => ({ id })))],
    }
    const byId = new Map(rows.map((row) => [row['id'], runOf(row)]))
    return heads.flatMap(({ id }) => byId.get(id) ?? [])
  }

  return {
    async register() {
      if (queues.size === 0) return
      const columns = {
        name: 'text',
        concurrency: 'bigint',
        per_key: 'bigint',
        rate_limit: 'bigint',
        rate_ms: 'bigint',
      }
      const records = [...queues.values()].map(({ name, concurrency, perKey: per_key, rate }) => {
        return { name, concurrency, per_key, rate_limit: rate?.limit ?? null, rate_ms: rate?.perMs ?? null }
      })
      const given = Object.keys(columns).join(', ')
      const set = ['concurrency', 'per_key', 'rate_limit', 'rate_ms'].map((each) => `${each} = excluded.${each}`)
      await query(
        `insert into onceonly_run_queues (${given}) select ${given} from ${dialect.recordsOf(columns as never)}
          where true order by name on conflict (name) do update set ${set.join(', ')}`,
        [JSON.stringify(records)],
      )
    },
    async dueIn() {
      if (queues.size === 0) return null
      const times = (await states()).flatMap(({ dueMs }) => dueMs ?? [])
      return times.length === 0 ? null : Math.min(...times)
    },
    async take(worker, most) {
      if (queues.size === 0) return { runs: [], more: false }
      const ready = (await states()).filter(({ dueMs, blocked }) => blocked || (dueMs !== null && dueMs <= 0))
      soughtAtMs = runtime.monotonicMs()
      const first = rotation++ % Math.max(ready.length, 1)
      const runs: RunRow[] = []
      let more = false
      for (const queue of [...ready.slice(first), ...ready.slice(0, first)]) {
        const left = most - runs.length
        if (left <= 0) return { runs, more: true }
        const isFree = queue.unlimited && !queue.blocked && !queue.delayed
        const taken = isFree
          ? await takeFreely(queue.name, worker, left)
          : await sql.script(() => admit(queue, worker, left))
        runs.push(...taken.runs)
        more ||= taken.more
      }
      return { runs, more }
    },
  }
}
