import { isOnceError, OnceError } from '../ledger/core/errors.ts'
import { backoffMs } from '../ledger/core/retry.ts'
import { createGroupCommit, isStatementSpoiled } from '../ledger/store/group-commit.ts'
import type { SqlSeam, Statement } from '../ledger/store/sql.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { sleep } from '../runtime/runtime.ts'
import type { RunDefinition } from './definition.ts'
import type { RunRow } from './entry.ts'
import { newRun } from './new-run.ts'
import type { EnqueueOptions, Queue } from './queue.ts'
import { runColumns, runOf } from './stored.ts'
import { RUN_TOPIC } from './tables.ts'
import { startStatement } from './writes.ts'

/** A run that is about to wait in a queue. */
export interface QueuedRun extends RunRow {
  readonly queue: NonNullable<RunRow['queue']>
  /** From now by the store's clock. */
  readonly delayMs: number
}

/** The row of a run that is about to be enqueued. */
export function queuedRun(
  definition: Pick<RunDefinition, 'name' | 'version' | 'timeoutMs'>,
  given: Omit<EnqueueOptions<unknown>, 'queue'> & { readonly runId: string },
  { name, priority: usual }: Queue,
  now: number,
  of: Partial<Pick<RunRow, 'parent' | 'ifParentEnds'>> = {},
): QueuedRun {
  const { key = '', delayMs = 0, priority = usual, dedupKey = null } = given
  const row = newRun(definition, given, { worker: null, now, ...of })
  const queue = { name, key, dedupKey, priority, readyAt: now + delayMs, admittedAt: null }
  return { ...row, state: 'queued', dueAt: null, deadlineAt: null, queue, delayMs }
}

/** Only what `queuedRun` made and is not stored yet has a delay. */
function isQueued(run: RunRow): run is QueuedRun {
  return 'delayMs' in run
}

/** Enters runs into their queues, many with one statement. */
export interface Enqueuing {
  /** The run as it stands: this one, the one of its id, or the one of its dedupKey. */
  enqueue(run: QueuedRun): Promise<{ readonly created: boolean; readonly row: RunRow }>
}

const columns = {
  id: 'text',
  definition: 'text',
  version: 'bigint',
  input: 'text',
  input_fingerprint: 'text',
  timeout_ms: 'bigint',
  queue: 'text',
  queue_key: 'text',
  dedup_key: 'text',
  priority: 'bigint',
  delay_ms: 'bigint',
  number: 'bigint',
  parent: 'text',
  if_parent_ends: 'text',
} as const

/** The run that was in the way may end before it is read; and a busy store is asked again. */
const TRIES = 5
const BUSY_RETRY = { baseMs: 50, capMs: 1_000 }

export function createEnqueuing(runtime: Runtime, sql: SqlSeam, learn: (now: number) => void): Enqueuing {
  const text = insertText(sql)
  const group = createGroupCommit(runtime, {
    lanes: sql.dialect.writers,
    flush: insertAll,
    isSpoiled: isStatementSpoiled,
    sizeOf: ({ input }: QueuedRun) => input.length,
  })

  async function insertAll(runs: readonly QueuedRun[]): Promise<boolean[]> {
    // Of two equal ids in one flush the second finds the first.
    const fresh = [...new Map(runs.map((run) => [run.id, run] as const).reverse()).values()].reverse()
    const records = fresh.map((run, number) => recordOf(sql, run, number))
    const inserted = await sql.query<{ id: string; now: unknown }>(text, [JSON.stringify(records)], { hot: true })
    if (inserted[0] !== undefined) learn(Number(inserted[0].now))
    const created = new Set(inserted.map(({ id }) => id))
    const isMine = new Set(fresh.filter(({ id }) => created.has(id)))
    return runs.map((run) => isMine.has(run))
  }

  /** Commits that notify wait for each other: where a disk is slow, that may take longer than a statement waits. */
  async function write(run: QueuedRun): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        return await group.write(run)
      } catch (error) {
        if (!isOnceError(error, 'store_busy') || tries === TRIES) throw error
        await sleep(runtime, backoffMs(tries, BUSY_RETRY, runtime.random()))
      }
    }
  }

  async function inTheWay({ id, queue: { name, dedupKey } }: QueuedRun): Promise<RunRow | undefined> {
    const [row] = await sql.query(`select ${runColumns} from onceonly_runs where id = ?`, [id])
    if (row !== undefined) return runOf(row)
    const [twin] = await sql.query(
      `select ${runColumns} from onceonly_runs
        where queue = ? and dedup_key = ? and dedup_key is not null and ended_at is null`,
      [name, dedupKey],
    )
    return twin === undefined ? undefined : runOf(twin)
  }

  return {
    async enqueue(run) {
      for (let tries = 1; tries <= TRIES; tries++) {
        if (await write(run)) return { created: true, row: run }
        const found = await inTheWay(run)
        if (found !== undefined) return { created: false, row: found }
      }
      const { name, dedupKey } = run.queue
      throw new OnceError('in_progress', `Runs of ${dedupKey} begin and end in the queue ${name}.`, {
        next: 'Enqueue it again.',
      })
    },
  }
}

/**
 * A turn is one more than the last of its key that waits, and not below the first that waits: so keys take turns, and a key
 * that comes later does not catch up on what it did not ask for. Rows of one dedupKey are locked in one order.
 */
export function turnText(row: string): string {
  const same = `k.queue = ${row}.queue and k.priority = ${row}.priority`
  const last = `coalesce((select max(k.turn) + 1 from onceonly_runs k
    where ${same} and k.queue_key = ${row}.queue_key and k.turn is not null), 0)`
  const first = `coalesce((select min(k.turn) from onceonly_runs k where ${same} and k.place = 'waiting'), 0)`
  return `case when ${last} > ${first} then ${last} else ${first} end`
}

/** Starts or enqueues a run in a transaction of others. It gives a row when there was no run of its id. */
export function beginStatement(sql: SqlSeam, run: RunRow): Statement {
  if (!isQueued(run)) return startStatement(sql, run)
  return { text: insertText(sql), values: [JSON.stringify([recordOf(sql, run, 0)])] }
}

function insertText({ now, dialect, wake }: SqlSeam): string {
  const behind = 'row_number() over (partition by x.queue, x.queue_key, x.priority order by x.number) - 1'
  return `insert into onceonly_runs (id, definition, version, input, input_fingerprint, timeout_ms, queue, queue_key,
      dedup_key, priority, parent, if_parent_ends, state, fence, started_at, ready_at, place, turn)
    select x.id, x.definition, x.version, x.input, x.input_fingerprint, x.timeout_ms, x.queue, x.queue_key,
      x.dedup_key, x.priority, x.parent, x.if_parent_ends, 'queued', 0, ${now}, ${now} + x.delay_ms,
      case when x.delay_ms > 0 then 'delayed' else 'waiting' end,
      case when x.delay_ms > 0 then null else ${turnText('x')} + ${behind} end
    from ${dialect.recordsOf(columns)} where true order by x.dedup_key, x.id on conflict do nothing
    returning id, started_at as now, ${wake(RUN_TOPIC)} as woken`
}

function recordOf(
  { secret }: SqlSeam,
  run: QueuedRun,
  number: number,
): Readonly<Record<keyof typeof columns, string | number | null>> {
  const { id, definition, version, timeoutMs: timeout_ms, queue, delayMs: delay_ms, parent } = run
  const { name, key: queue_key, dedupKey: dedup_key, priority } = queue
  const [input, input_fingerprint] = [secret(run.input), secret(run.inputFingerprint)]
  const place = { queue: name, queue_key, dedup_key, priority, delay_ms, number }
  const bound = { parent, if_parent_ends: run.ifParentEnds }
  return { id, definition, version, input, input_fingerprint, timeout_ms, ...place, ...bound }
}
