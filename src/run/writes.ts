import type { Runtime } from '../ledger/runtime.ts'
import type { SqlSeam, SqlTx } from '../store/sql.ts'
import type { Entry, RunRow, RunState } from './entry.ts'
import type { Group } from './group.ts'
import { createGroup } from './group.ts'
import { recordsOf } from './rows.ts'
import { entryChanges, entryColumns, entryOf, entryRecord, runColumns, runOf } from './stored.ts'
import { RUN_TOPIC } from './tables.ts'

/** Who writes: a run as one worker took it. A worker that lost it has an older fence, and writes nothing. */
export interface Holder {
  readonly runId: string
  readonly fence: number
}

/** The states in which a worker leaves a run. */
export interface Leaving extends Holder {
  readonly state: RunState
  readonly dueAt: number | null
  readonly result: string | null
  readonly failure: string | null
  readonly ended: boolean
  /** What a worker before left in the middle is still open: whoever comes next must know. */
  readonly handedOver: boolean
}

/** The writes of a running process, each one statement for many runs at once. */
export interface Writes {
  /** The run as it is now, which may be somebody else's: compare before using it. */
  start(run: RunRow): Promise<{ readonly created: boolean; readonly row: RunRow }>
  /** False when the run is somebody else's by now: nothing was written. */
  put(holder: Holder, entry: Entry): Promise<boolean>
  /** The same inside a transaction, with whatever else commits there. */
  putIn(tx: SqlTx, holder: Holder, entry: Entry): Promise<boolean>
  /** What is recorded under a key, once nobody's open transaction can change it any more. */
  committed(tx: SqlTx, runId: string, key: string): Promise<Entry | null>
  leave(leaving: Leaving): Promise<boolean>
}

interface Put {
  readonly holder: Holder
  readonly entry: Entry
}

type Query = SqlTx['query']

export function createWrites(runtime: Runtime, sql: SqlSeam): Writes {
  const starts = createGroup(
    runtime,
    (runs: readonly RunRow[]) => startAll(sql, runs),
    ({ input }) => input.length,
  )
  const text = putSql(sql)
  const puts: Group<Put, boolean> = createGroup(
    runtime,
    (items: readonly Put[]) => putAll(sql.query, text, items),
    ({ entry }) => (entry.result?.length ?? 0) + (entry.plan?.length ?? 0),
  )
  const leaves = createGroup(
    runtime,
    (items: readonly Leaving[]) => leaveAll(sql, items),
    ({ result }) => result?.length ?? 0,
  )
  return {
    start: (run) => starts.write(run),
    put: (holder, entry) => puts.write({ holder, entry }),
    putIn: async (tx, holder, entry) => (await putAll(tx.query, text, [{ holder, entry }]))[0] === true,
    async committed(tx, runId, key) {
      // A transaction of ours that is still committing holds the run; on SQLite there is one writer anyway.
      const wait = sql.dialect === 'postgres' ? 'for update' : ''
      await tx.query(`select id from onceonly_runs where id = ? ${wait}`, [runId])
      const names = Object.keys(entryColumns).join(', ')
      const [row] = await tx.query(`select ${names} from onceonly_run_steps where run_id = ? and key = ?`, [runId, key])
      return row === undefined ? null : entryOf(row)
    },
    leave: (leaving) => leaves.write(leaving),
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
  due_at: 'bigint',
  taken_at: 'bigint',
  started_at: 'bigint',
  restarts: 'text',
} as const

async function startAll(sql: SqlSeam, runs: readonly RunRow[]): Promise<{ created: boolean; row: RunRow }[]> {
  const names = Object.keys(startColumns).join(', ')
  // Of two equal ids in one flush the second finds the first.
  const fresh = [...new Map(runs.map((run) => [run.id, run] as const).reverse()).values()]
  const inserted = await sql.query<{ id: string }>(
    `insert into onceonly_runs (${names}) select ${names} from ${recordsOf(sql.dialect, startColumns)} where true
      order by id on conflict (id) do nothing returning id, case when worker is null then ${sql.wake(RUN_TOPIC)} end as woken`,
    [JSON.stringify(fresh.map(startRecord))],
  )
  const created = new Set(inserted.map(({ id }) => id))
  const others = runs.filter((run) => !created.has(run.id) || fresh.every((each) => each !== run))
  const found = others.length === 0 ? new Map<string, RunRow>() : await readRuns(sql, others)
  return runs.map((run) => {
    const mine = created.has(run.id) && fresh.includes(run)
    return { created: mine, row: mine ? run : (found.get(run.id) ?? run) }
  })
}

function startRecord(run: RunRow): Readonly<Record<keyof typeof startColumns, string | number | null>> {
  const { id, definition, version, state, input, worker, fence, restarts } = run
  const { inputFingerprint: input_fingerprint, dueAt: due_at, takenAt: taken_at, startedAt: started_at } = run
  const times = { due_at, taken_at, started_at }
  return { id, definition, version, state, input, input_fingerprint, worker, fence, restarts, ...times }
}

async function readRuns(sql: SqlSeam, runs: readonly RunRow[]): Promise<Map<string, RunRow>> {
  const rows = await sql.query(
    `select ${runColumns} from onceonly_runs where id in (select id from ${recordsOf(sql.dialect, { id: 'text' })})`,
    [JSON.stringify(runs.map(({ id }) => ({ id })))],
  )
  return new Map(rows.map((row) => [row['id'] as string, runOf(row)]))
}

/**
 * The fenced insert: one durable write for a step. The share lock makes a takeover wait for it, and it for a takeover,
 * so that whoever loads the journal has it whole. Locks are taken in the order of the ids, as everywhere in this room.
 */
function putSql({ dialect }: SqlSeam): string {
  const names = Object.keys(entryColumns).join(', ')
  const values = Object.keys(entryColumns)
    .map((name) => `x.${name}`)
    .join(', ')
  const changes = entryChanges.map((name) => `${name} = excluded.${name}`).join(', ')
  const lock = dialect === 'postgres' ? 'order by r.id for share of r' : ''
  return `with held as (
      select r.id, r.fence from onceonly_runs r
      join ${recordsOf(dialect, { run_id: 'text', fence: 'bigint' })} on x.run_id = r.id and x.fence = r.fence ${lock}
    )
    insert into onceonly_run_steps (run_id, ${names})
    select x.run_id, ${values} from ${recordsOf(dialect, { run_id: 'text', ...entryColumns })}
    where x.run_id in (select id from held)
    on conflict (run_id, key) do update set ${changes}
    returning run_id, key`
}

async function putAll(query: Query, text: string, items: readonly Put[]): Promise<boolean[]> {
  const fences = new Map<string, number>()
  for (const { holder } of items) {
    fences.set(holder.runId, Math.max(holder.fence, fences.get(holder.runId) ?? holder.fence))
  }
  // This process may have lost a run and taken it again: its older hold is over, whatever the record says.
  const current = items.filter(({ holder }) => holder.fence === fences.get(holder.runId))
  // Of two writes of one step the later one stays, as if they had come one after the other.
  const last = new Map(current.map((item) => [`${item.holder.runId} ${item.entry.key}`, item]))
  const rows = await query<{ run_id: string; key: string }>(text, [
    JSON.stringify([...fences].map(([runId, fence]) => ({ run_id: runId, fence }))),
    JSON.stringify([...last.values()].map(({ holder, entry }) => ({ run_id: holder.runId, ...entryRecord(entry) }))),
  ])
  const written = new Set(rows.map(({ run_id, key }) => `${run_id} ${key}`))
  return items.map((item) => current.includes(item) && written.has(`${item.holder.runId} ${item.entry.key}`))
}

const leaveColumns = {
  id: 'text',
  fence: 'bigint',
  state: 'text',
  due_at: 'bigint',
  result: 'text',
  failure: 'text',
  ended: 'bigint',
  handed_over: 'bigint',
} as const

async function leaveAll({ dialect, query, now }: SqlSeam, items: readonly Leaving[]): Promise<boolean[]> {
  const records = items.map(({ runId: id, fence, state, dueAt: due_at, result, failure, ended, handedOver }) => {
    const flags = { ended: ended ? 1 : 0, handed_over: handedOver ? 1 : 0 }
    return { id, fence, state, due_at, result, failure, ...flags }
  })
  // A signal that came while the run was going to sleep has left its mark: then it is due at once.
  const rows = await query<{ id: string }>(
    `update onceonly_runs set state = x.state, result = x.result, failure = x.failure, worker = null, taken_at = null,
        ended_at = case when x.ended = 1 then ${now} end,
        taken_before = case when x.handed_over = 1 then onceonly_runs.taken_before end,
        due_at = case when x.ended = 1 then null else coalesce(onceonly_runs.due_at, x.due_at) end
      from ${recordsOf(dialect, leaveColumns)}
      where onceonly_runs.id = x.id and onceonly_runs.fence = x.fence and onceonly_runs.worker is not null
      returning onceonly_runs.id`,
    [JSON.stringify(records)],
  )
  const left = new Set(rows.map(({ id }) => id))
  return items.map(({ runId }) => left.has(runId))
}
