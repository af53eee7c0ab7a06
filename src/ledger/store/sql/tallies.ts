import { limits } from '../../core/limits.ts'
import type { BusyCaller, Tally, Upkeep } from '../port.ts'
import { partsOf } from './lapsed.ts'
import type { RecordTables, TableQuery } from './tables.ts'

const COUNTS = ['claims', 'replays', 'conflicts', 'in_progress'] as const
const CALLER = ['tenant', 'caller', 'operation'] as const

/** Adds to the counts on records and on callers. Counting never waits: a record that is locked is not counted this time. */
export function createTally(tables: RecordTables): Upkeep['tally'] {
  const texts = statementsOf(tables)
  return async ({ records, callers }, call) => {
    for (const part of partsOf(records, tables.writeRows)) {
      await tables.write(call, async (query) => {
        const free = await query(texts.lock, [JSON.stringify(part.map(({ id }) => ({ id })))])
        const ids = new Set(free.map(({ id }) => id))
        const counted = part.filter(({ id }) => ids.has(id))
        if (counted.length > 0) await query(texts.countRecords, [recordsJson(counted)])
      })
    }
    for (const part of partsOf(callers, tables.writeRows)) {
      await tables.write(call, (query) => query(texts.countCallers, [callersJson(part)]))
    }
  }
}

/** Removes old counts of callers: once per round of the sweep, and bounded like every other step of it. */
export function createForgetTallies(tables: RecordTables): (query: TableQuery) => Promise<void> {
  const { tallies, dialect, now } = tables
  const key = `bucket_at, ${CALLER.join(', ')}`
  const old = `SELECT ${key} FROM ${tallies} WHERE bucket_at <= (SELECT ${now}) - ${limits.tallyKeepMs}
    LIMIT ${Math.min(limits.tallyRows, tables.writeRows)} ${dialect.lock('for update skip locked')}`
  const columns = { bucket_at: 'bigint', tenant: 'text', caller: 'text', operation: 'text' } as const
  const list = dialect.recordsOf(columns)
  const remove = tables.removeTallies?.(list) ?? `DELETE FROM ${tallies} WHERE (${key}) IN (SELECT ${key} FROM ${list})`
  return async (query) => {
    const rows = await query(old)
    if (rows.length === 0) return
    await query(remove, [JSON.stringify(rows.map((row) => ({ ...row, bucket_at: Number(row['bucket_at']) })))])
  }
}

export function createBusiest(tables: RecordTables) {
  const big = tables.dialect.place('bigint')
  const sums = COUNTS.map((column) => `sum(${column}) AS ${column}`).join(', ')
  const total = COUNTS.map((column) => `sum(${column})`).join(' + ')
  const callers = CALLER.join(', ')
  const text = `SELECT ${callers}, ${sums} FROM ${tables.tallies} WHERE bucket_at > ${big}
    GROUP BY ${callers} ORDER BY ${total} DESC, ${callers} LIMIT ${big}`

  /** A bucket counts when any part of it is recent enough. */
  return async (query: TableQuery, since: number, limit: number): Promise<BusyCaller[]> => {
    const rows = await query(text, [Math.floor(since) - limits.tallyBucketMs, limit])
    return rows.map((row) => ({
      tenant: row['tenant'] as string,
      caller: row['caller'] as string,
      operation: row['operation'] as string,
      claims: Number(row['claims']),
      replays: Number(row['replays']),
      conflicts: Number(row['conflicts']),
      inProgress: Number(row['in_progress']),
    }))
  }
}

function statementsOf(tables: RecordTables): Record<'lock' | 'countRecords' | 'countCallers', string> {
  const { dialect, records, tallies, now } = tables
  const given = { id: 'id', replays: 'bigint', conflicts: 'bigint', in_progress: 'bigint', ago_ms: 'bigint' } as const
  const last = `(SELECT ${now}) - x.ago_ms`
  const byKey = dialect.byKey === undefined ? '' : ` ${dialect.byKey}`
  const table = tallies.slice(tallies.lastIndexOf('.') + 1)
  const bucket = `moment.now - moment.now % ${limits.tallyBucketMs}`
  const callers = CALLER.map((column) => `x.${column}`)
  const columns = {
    tenant: 'text',
    caller: 'text',
    operation: 'text',
    claims: 'bigint',
    replays: 'bigint',
    conflicts: 'bigint',
    in_progress: 'bigint',
  } as const
  return {
    lock: `SELECT ${dialect.idText('r.id')} AS id FROM ${dialect.recordsOf({ id: 'id' })} ${dialect.orderedJoin} ${records} AS r${byKey}
      ON ${tables.byId('x.id')} ORDER BY r.id ${dialect.lock('for update of r skip locked')}`,
    countRecords: dialect.updateFrom(
      `${records} AS r`,
      {
        replays: 'r.replays + x.replays',
        conflicts: 'r.conflicts + x.conflicts',
        in_progress: 'r.in_progress + x.in_progress',
        repeated_at: `CASE WHEN r.repeated_at > ${last} THEN r.repeated_at ELSE ${last} END`,
      },
      dialect.recordsOf(given),
      tables.byId('x.id'),
    ),
    // In one order, so that two processes that count the same callers never wait for each other in a circle.
    countCallers: `INSERT INTO ${tallies} (bucket_at, ${CALLER.join(', ')}, ${COUNTS.join(', ')})
      SELECT ${bucket}, ${callers.join(', ')}, ${COUNTS.map((column) => `sum(x.${column})`).join(', ')}
      FROM (SELECT ${now} AS now) AS moment, ${dialect.recordsOf(columns)} 
      GROUP BY moment.now, ${callers.join(', ')} ORDER BY ${callers.join(', ')}
      ${dialect.upsert(['bucket_at', ...CALLER], Object.fromEntries(COUNTS.map((column) => [column, `${table}.${column} + excluded.${column}`])))}`,
  }
}

function recordsJson(records: Tally['records']): string {
  return JSON.stringify(
    records.map(({ id, replays, conflicts, inProgress, lastAgoMs }) => ({
      id,
      replays,
      conflicts,
      in_progress: inProgress,
      ago_ms: Math.floor(lastAgoMs),
    })),
  )
}

function callersJson(callers: readonly BusyCaller[]): string {
  return JSON.stringify(callers.map(({ inProgress, ...busy }) => ({ ...busy, in_progress: inProgress })))
}
