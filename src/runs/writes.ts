import type { GroupCommit } from '../ledger/store/group-commit.ts'
import { createGroupCommit, isStatementSpoiled } from '../ledger/store/group-commit.ts'
import type { Script, SqlRow, SqlSeam, SqlTx, Statement } from '../ledger/store/sql.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Next } from './continued.ts'
import { startNext } from './continued.ts'
import type { Entry, Holder, RunRow, RunState } from './entry.ts'
import { lockRuns, markDue } from './locks.ts'
import { createPuts } from './puts.ts'
import { entryColumns, entryOf, runColumns, runOf } from './stored.ts'
import { RUN_TOPIC } from './tables.ts'

/** The states in which a worker leaves a run. */
export interface Leaving extends Holder {
  /** Other workers are woken for what is free or due now, because this one takes nothing any more. */
  readonly wakes?: boolean
  readonly state: RunState
  readonly dueAt: number | null
  readonly result: string | null
  readonly failure: string | null
  readonly ended: boolean
  /** By whom steps may have begun whose end is not recorded: the next worker must know. */
  readonly leftOpen: LeftOpen
  /** The run that waits for its end, and becomes due with it. */
  readonly parent: string | null
  /** The run that continues it. */
  readonly next: Next | null
}

export type LeftOpen = 'by_none' | 'by_an_earlier_worker' | 'by_this_worker'

/** The writes of a running process, each one statement for many runs at once. */
export interface Writes {
  /** The run as it is now, which another caller may have started: compare before using it. */
  start(run: RunRow): Promise<{ readonly created: boolean; readonly row: RunRow }>
  /** False when another worker has the run by now: nothing was written. */
  put(holder: Holder, entry: Entry): Promise<boolean>
  /** The same inside a transaction, with whatever else commits there. */
  putIn(tx: SqlTx, holder: Holder, entry: Entry): Promise<boolean>
  /** The same in a script. It gives a row when the entry was written. */
  putStatement(holder: Holder, entry: Entry): Statement
  /**
   * Replaces an entry that was unknown, unless an operator has resolved it meanwhile: then the resolution stays. Returns what
   * is recorded now; null when another worker has the run.
   */
  settle(holder: Holder, entry: Entry): Promise<Entry | null>
  /** What is recorded under a key; null when another worker has the run, or nothing is recorded. */
  entry(holder: Holder, key: string): Promise<Entry | null>
  /** What is recorded under a key, once no open transaction can change it any more. */
  committed(tx: SqlTx, runId: string, key: string): Promise<Entry | null>
  leave(leaving: Leaving): Promise<boolean>
}

/** `learn` gets the store's time from every write that returns it. */
export function createWrites(runtime: Runtime, sql: SqlSeam, learn: (now: number) => void): Writes {
  // A second flush is under way while the first one syncs.
  const lanes = sql.dialect.writers
  const puts = createPuts(sql, learn)
  const starts = createGroupCommit(runtime, {
    lanes,
    flush: (runs: readonly RunRow[]) => startAll(sql, runs, learn),
    isSpoiled: isStatementSpoiled,
    sizeOf: ({ input }) => input.length,
  })
  const putting: GroupCommit<{ readonly holder: Holder; readonly entry: Entry }, boolean> = createGroupCommit(runtime, {
    lanes,
    flush: puts.putAll,
    isSpoiled: isStatementSpoiled,
    sizeOf: ({ entry }) => (entry.result?.length ?? 0) + (entry.plan?.length ?? 0),
  })
  const leaves = createGroupCommit(runtime, {
    lanes,
    flush: (items: readonly Leaving[]) => leaveAll(sql, items),
    isSpoiled: isStatementSpoiled,
    sizeOf: ({ result }) => result?.length ?? 0,
  })
  const names = Object.keys(entryColumns).join(', ')

  async function entry({ runId, fence }: Holder, key: string): Promise<Entry | null> {
    const [row] = await sql.query(
      `select ${names} from onceonly_run_steps where run_id = ? and key = ?
        and exists (select 1 from onceonly_runs where id = ? and fence = ?)`,
      [runId, key, runId, fence],
    )
    return row === undefined ? null : entryOf(row)
  }

  return {
    start: async (run) => await starts.write(run),
    put: async (holder, given) => await putting.write({ holder, entry: given }),
    putIn: (tx, holder, given) => puts.putIn(tx, holder, given),
    putStatement: (holder, given) => puts.putStatement(holder, given),
    // It is not unknown any more: an operator was faster, or this write was applied and its answer was lost.
    settle: async (holder, given) => ((await puts.settle(holder, given)) ? given : await entry(holder, given.key)),
    entry,
    async committed(tx, runId, key) {
      // A transaction of ours that is still committing holds the run; on SQLite there is one writer anyway.
      const wait = sql.dialect.lock('for update')
      await tx.query(`select id from onceonly_runs where id = ? ${wait}`, [runId])
      const [row] = await tx.query(`select ${names} from onceonly_run_steps where run_id = ? and key = ?`, [runId, key])
      return row === undefined ? null : entryOf(row)
    },
    leave: async (leaving) => await leaves.write(leaving),
  }
}

const startColumns = {
  id: 'text',
  definition: 'text',
  version: 'bigint',
  state: 'text',
  input: 'text',
  input_fingerprint: 'text',
  worker: 'text',
  fence: 'bigint',
  restarts: 'text',
  timeout_ms: 'bigint',
  parent: 'text',
  if_parent_ends: 'text',
  forked_from: 'text',
  continues: 'text',
} as const

async function startAll(
  sql: SqlSeam,
  runs: readonly RunRow[],
  learn: (now: number) => void,
): Promise<{ created: boolean; row: RunRow }[]> {
  // Of two equal ids in one flush the second finds the first.
  const fresh = [...new Map(runs.map((run) => [run.id, run] as const).reverse()).values()]
  const inserted = await sql.query<Inserted>(insertText(sql), insertValues(sql, fresh), { hot: true })
  if (inserted[0] !== undefined) learn(Number(inserted[0].now))
  const created = new Set(inserted.map(({ id }) => id))
  const isMine = new Set(fresh.filter(({ id }) => created.has(id)))
  const others = runs.filter((run) => !isMine.has(run))
  const found = others.length === 0 ? new Map<string, RunRow>() : await readRuns(sql, others)
  return runs.map((run) => {
    const mine = isMine.has(run)
    return { created: mine, row: mine ? run : (found.get(run.id) ?? run) }
  })
}

/** Starts a run in a script, for any worker. It gives a row when there was no run of its id. */
export function startStatement(sql: SqlSeam, run: RunRow): Statement {
  return { text: insertText(sql), values: insertValues(sql, [run]) }
}

interface Inserted {
  readonly id: string
  readonly now: unknown
}

/** A run that its starter drives from its first moment needs no wake; any other run is due. */
function insertText({ now, dialect, wake }: SqlSeam): string {
  const names = Object.keys(startColumns).join(', ')
  return `insert into onceonly_runs (${names}, started_at, taken_at, due_at, deadline_at)
    select ${names}, ${now}, case when worker is not null then ${now} end, case when worker is null then ${now} end,
      ${now} + timeout_ms
    from ${dialect.recordsOf(startColumns)} where true order by id on conflict (id) do nothing
    returning id, started_at as now, case when worker is null then ${wake(RUN_TOPIC)} end as woken`
}

function insertValues(sql: SqlSeam, runs: readonly RunRow[]): [string] {
  return [JSON.stringify(runs.map((run) => startRecord(sql, run)))]
}

function startRecord(
  { secret }: SqlSeam,
  run: RunRow,
): Readonly<Record<keyof typeof startColumns, string | number | null>> {
  const { id, definition, version, state, worker, fence, restarts, timeoutMs: timeout_ms, parent } = run
  const [input, input_fingerprint] = [secret(run.input), secret(run.inputFingerprint)]
  const known = {
    id,
    definition,
    version,
    state,
    input,
    input_fingerprint,
    worker,
    fence,
    restarts,
    timeout_ms,
    parent,
  }
  return { ...known, if_parent_ends: run.ifParentEnds, forked_from: run.forkedFrom, continues: run.continues }
}

async function readRuns(sql: SqlSeam, runs: readonly RunRow[]): Promise<Map<string, RunRow>> {
  const rows = await sql.query(
    `select ${runColumns} from onceonly_runs where id in (select id from ${sql.dialect.recordsOf({ id: 'text' })})`,
    [JSON.stringify(runs.map(({ id }) => ({ id })))],
  )
  return new Map(rows.map((row) => [row['id'] as string, runOf(row)]))
}

const leaveColumns = {
  id: 'text',
  fence: 'bigint',
  state: 'text',
  due_at: 'bigint',
  result: 'text',
  failure: 'text',
  ended: 'bigint',
  left_open: 'text',
} as const

async function leaveAll(sql: SqlSeam, items: readonly Leaving[]): Promise<boolean[]> {
  const leaves = leaveStatement(sql, items)
  const next = new Map(items.flatMap(({ runId, next: each }) => (each === null ? [] : [[runId, each]])))
  const parentOf = new Map(
    items.flatMap(({ runId, parent, ended }) => (ended && parent !== null ? [[runId, parent]] : [])),
  )
  const rows =
    parentOf.size + next.size === 0
      ? await sql.query(leaves.text, leaves.values, { hot: true })
      : await sql.script(() => leaveTogether(sql, items, leaves, parentOf, next))
  const left = new Set(rows.map(({ id }) => id))
  return items.map(({ runId }) => left.has(runId))
}

/** The parent of a child becomes due in the transaction that records the end; so does the run that continues another one. */
function* leaveTogether(
  sql: SqlSeam,
  items: readonly Leaving[],
  leaves: Statement,
  parentOf: ReadonlyMap<string, string>,
  next: ReadonlyMap<string, Next>,
): Script<readonly SqlRow[]> {
  yield* lockRuns(sql, [...items.map(({ runId }) => runId), ...parentOf.values()])
  const rows = yield leaves
  for (const { id } of rows) {
    const each = next.get(id as string)
    if (each !== undefined) yield* startNext(sql, id as string, each, (row) => startStatement(sql, row))
  }
  const parents = rows.flatMap(({ id }) => parentOf.get(id as string) ?? [])
  if (parents.length > 0) yield markDue(sql, [...new Set(parents)])
  return rows
}

function leaveStatement({ dialect, now, secret, wake }: SqlSeam, items: readonly Leaving[]): Statement {
  const records = items.map(
    ({ runId: id, fence, state, dueAt: due_at, result, failure, ended, leftOpen: left_open }) => {
      const kept = { result: secret(result), failure: secret(failure) }
      return { id, fence, state, due_at, ...kept, ended: ended ? 1 : 0, left_open }
    },
  )
  const woken = items.some(({ wakes }) => wakes === true)
    ? `, case when queue is not null or onceonly_runs.due_at is not null then ${wake(RUN_TOPIC)} end as woken`
    : ''
  // A signal that came while the run was going to sleep has left its mark: then it is due at once.
  const text = `update onceonly_runs set state = x.state, result = x.result, failure = x.failure, worker = null, taken_at = null,
        takeovers = 0, ended_at = case when x.ended = 1 then ${now} end,
        taken_before = case x.left_open when 'by_an_earlier_worker' then onceonly_runs.taken_before
          when 'by_this_worker' then coalesce(onceonly_runs.taken_before, onceonly_runs.taken_at) end,
        due_at = case when x.ended = 1 then null else coalesce(onceonly_runs.due_at, x.due_at) end
      from ${dialect.recordsOf(leaveColumns)}
      where onceonly_runs.id = x.id and onceonly_runs.fence = x.fence and onceonly_runs.worker is not null
      returning onceonly_runs.id${woken}`
  return { text, values: [JSON.stringify(records)] }
}
