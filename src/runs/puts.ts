import type { RoomDialect, RowOf, SqlSeam, SqlTx, SqlValue, Statement } from '../ledger/store/sql.ts'
import type { Entry, Holder } from './entry.ts'
import { entryChanges, entryColumns, entryRecord } from './stored.ts'

export interface Put {
  readonly holder: Holder
  readonly entry: Entry
}

/** How entries get into the journal: never without the fence of their run, in the same statement. */
export interface Puts {
  putAll(items: readonly Put[]): Promise<boolean[]>
  putIn(tx: SqlTx, holder: Holder, entry: Entry): Promise<boolean>
  /** For a script. It gives a row when the entry was written. */
  putStatement(holder: Holder, entry: Entry): Statement
  /** Only over an entry that is unknown. */
  settle(holder: Holder, entry: Entry): Promise<boolean>
}

type Written = RowOf<'run_id' | 'key', 'now'>

const columns = Object.keys(entryColumns) as readonly (keyof typeof entryColumns)[]

export function createPuts(sql: SqlSeam, learn: (now: number) => void): Puts {
  const { dialect, query, now } = sql
  const one = putOneSql(dialect, now)
  const many = putManySql(dialect, now)
  const over = settleSql(dialect)

  async function putMany(items: readonly Put[]): Promise<boolean[]> {
    const fences = new Map<string, number>()
    for (const { holder } of items) {
      fences.set(holder.runId, Math.max(holder.fence, fences.get(holder.runId) ?? holder.fence))
    }
    // This process may have lost a run and taken it again: its older hold is over, whatever the record says.
    const isCurrent = ({ holder }: Put) => holder.fence === fences.get(holder.runId)
    // Of two writes of one step the later one stays, as if they had come one after the other.
    const last = new Map(items.filter(isCurrent).map((item) => [nameOf(item), item]))
    const records = [...last.values()].map(({ holder: { runId, fence }, entry }) => ({
      run_id: runId,
      fence,
      ...entryRecord(sql, entry),
    }))
    const rows = await query<Written>(many, [JSON.stringify(records)], { hot: true })
    if (rows[0] !== undefined) learn(Number(rows[0].now))
    const written = new Set(rows.map(({ run_id, key }) => `${run_id} ${key}`))
    return items.map((item) => isCurrent(item) && written.has(nameOf(item)))
  }

  async function putAll(items: readonly Put[]): Promise<boolean[]> {
    const [first] = items
    if (first === undefined || items.length > 1) return putMany(items)
    const [row] = await query<Written>(one, valuesOf(sql, first), { hot: true })
    if (row !== undefined) learn(Number(row.now))
    return [row !== undefined]
  }

  return {
    putAll,
    putStatement: (holder, entry) => ({ text: one, values: valuesOf(sql, { holder, entry }) }),
    putIn: async (tx, holder, entry) => (await tx.query(one, valuesOf(sql, { holder, entry }))).length > 0,
    async settle({ runId, fence }, entry) {
      const record = entryRecord(sql, entry)
      const rows = await query(over, [...entryChanges.map((name) => record[name]), runId, entry.key, runId, fence])
      return rows.length > 0
    },
  }
}

function nameOf({ holder, entry }: Put): string {
  return `${holder.runId} ${entry.key}`
}

function valuesOf(sql: SqlSeam, { holder: { runId, fence }, entry }: Put): SqlValue[] {
  const record = entryRecord(sql, entry)
  return [runId, ...columns.map((name) => record[name]), runId, fence]
}

/**
 * The fenced insert: one durable write for a step. The share lock makes a takeover wait for it, and it for a takeover, so
 * that the worker that loads the journal has all of it.
 */
function putOneSql(dialect: RoomDialect, now: string): string {
  const values = columns.map((name) => dialect.place(entryColumns[name])).join(', ')
  return `insert into onceonly_run_steps (run_id, ${columns.join(', ')})
    select ${dialect.place('text')}, ${values}
    from (select 1 from onceonly_runs where id = ? and fence = ? ${dialect.lock('for share')}) as held where true
    ${REPEATED} returning run_id, key, ${now} as now`
}

/** The same for many at once. Locks are taken in the order of the ids, as everywhere in this room. */
function putManySql(dialect: RoomDialect, now: string): string {
  const given = { run_id: 'text', fence: 'bigint', ...entryColumns } as const
  const values = columns.map((name) => `x.${name}`).join(', ')
  return `insert into onceonly_run_steps (run_id, ${columns.join(', ')})
    with x as materialized (select * from ${dialect.recordsOf(given)}),
    held as materialized (
      select r.id from x join onceonly_runs r on r.id = x.run_id and r.fence = x.fence
      order by r.id ${dialect.lock('for share of r')}
    )
    select x.run_id, ${values} from x where x.run_id in (select id from held)
    ${REPEATED} returning run_id, key, ${now} as now`
}

function settleSql(dialect: RoomDialect): string {
  const changes = entryChanges.map((name) => `${name} = ${dialect.place(entryColumns[name])}`).join(', ')
  return `update onceonly_run_steps set ${changes}
    where run_id = ? and key = ? and state = 'unknown' and exists (select 1 from onceonly_runs
      where id = ? and fence = ? ${dialect.lock('for share')}) returning key`
}

/** The place of a step in its run stays; its state may change. */
const REPEATED = `on conflict (run_id, key) do update set ${entryChanges
  .map((name) => `${name} = excluded.${name}`)
  .join(', ')}`
