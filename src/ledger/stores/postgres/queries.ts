import { limits } from '../../core/limits.ts'
import type { VisibleState } from '../../core/record.ts'
import { visibleStates } from '../../core/record.ts'
import type { BusyCaller, Page, Queries, RecordFilter, RecordView, StateCounts } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { nowSql } from './clock-sql.ts'
import { inTransaction } from './connection.ts'
import type { Borrowed, Core } from './core.ts'
import { fenceOf } from './cursor.ts'
import { createLapsedScan } from './lapsed.ts'
import type { Names } from './names.ts'
import type { TextRow } from './statement.ts'
import { columnsOf, recordOf, text } from './statement.ts'

const codesOf: Record<VisibleState, readonly number[]> = {
  in_progress: [stateCode.reserved, stateCode.running],
  succeeded: [stateCode.succeeded],
  failed_terminal: [stateCode.failed_terminal],
  failed_retryable: [stateCode.failed_retryable, stateCode.lapsed],
  unknown: [stateCode.unknown],
}

const visibleCodes = visibleStates.flatMap((state) => codesOf[state])

export function createQueries(core: Core): Queries {
  const { names } = core
  const findLapsed = createLapsedScan(names)
  return {
    get: (id, call) =>
      core.read(call, async ({ rows }) => {
        const [row] = await rows(
          `SELECT m.now, ${COUNTS}, ${columnsOf('r')}
           FROM (SELECT ${nowSql(names)} AS now) AS m
           LEFT JOIN ${names.records} AS r ON r.id = $1::uuid AND ${visible('m.now')}`,
          [id],
        )
        return { now: Number(row?.['now']), view: row === undefined || row['id'] === null ? null : viewOf(row) }
      }),
    list: (filter, page, call) => core.read(call, (on) => listRecords(on, names, filter, page)),
    count: (filter, call) => core.read(call, (on) => countRecords(on, names, filter, call.timeoutMs)),
    lapsed: (from, limit, call) => core.read(call, (on) => findLapsed(on, { from, limit, call })),
    unknowns: ({ limit, cursor }, call) =>
      core.read(call, async ({ rows }) => {
        const found = await rows(
          `SELECT u.fence AS place, ${columnsOf('r')}
           FROM (SELECT * FROM ${names.unknowns} WHERE fence < $1::bigint ORDER BY fence DESC LIMIT $2::int) AS u
           LEFT JOIN ${names.records} AS r ON r.id = u.id AND r.state = ${stateCode.unknown}
           ORDER BY u.fence DESC`,
          [cursor === null ? NO_FENCE : fenceOf(cursor), limit],
        )
        const records = found.filter((row) => row['id'] !== null).map(recordOf)
        return { rows: records, cursor: found.length < limit ? null : text(found.at(-1) ?? {}, 'place') }
      }),
    busiest: (since, limit, call) => core.read(call, (on) => busiestCallers(on, names, since, limit)),
  }
}

const COUNTS = 'r.replays, r.conflicts, r.in_progress, r.repeated_at'

/** Beyond every fence. */
const NO_FENCE = Number.MAX_SAFE_INTEGER

/** Past its end a record is invisible at once, whether or not the sweep has been there. */
function visible(now: string): string {
  return `r.state IN (${visibleCodes.join(', ')}) AND (r.expires_at IS NULL OR r.expires_at > ${now})`
}

/** The conditions of a filter, on rows `r`; their values are appended to `values`. */
function conditions(filter: RecordFilter, values: unknown[]): string {
  const parts: string[] = []
  const given = (condition: string, value: unknown) => {
    if (value === undefined) return
    values.push(value)
    parts.push(condition.replace('?', `$${values.length}`))
  }
  given('r.tenant = ?', filter.tenant)
  given('r.caller = ?', filter.caller)
  given('r.operation = ?', filter.operation)
  given('r.key = ?', filter.key)
  given('r.state = ANY (?::smallint[])', filter.state === undefined ? undefined : codesOf[filter.state])
  given('r.claimed_at >= ?::bigint', filter.since)
  return parts.length === 0 ? 'true' : parts.join(' AND ')
}

/**
 * Newest first, along the index on the fence. The inner LIMIT bounds what one call looks at, the outer one stops as soon
 * as the page is full; only a page that is not full has to find out where the look ended.
 */
async function listRecords(
  { rows }: Borrowed,
  names: Names,
  filter: RecordFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null },
): Promise<Page<RecordView>> {
  const below = cursor === null ? NO_FENCE : fenceOf(cursor)
  const values: unknown[] = [below, limits.scanRows, limit]
  const found = await rows(
    `SELECT ${COUNTS}, ${columnsOf('r')}
     FROM (SELECT ${nowSql(names)} AS now) AS m,
       (SELECT * FROM ${names.records} WHERE fence < $1::bigint ORDER BY fence DESC LIMIT $2::int) AS r
     WHERE ${filter.ended === true ? 'true' : visible('m.now')} AND ${conditions(filter, values)}
     ORDER BY r.fence DESC LIMIT $3::int`,
    values,
  )
  if (found.length === limit) return { rows: found.map(viewOf), cursor: text(found.at(-1) ?? {}, 'fence') }
  const [end] = await rows(
    `SELECT fence FROM ${names.records} WHERE fence < $1::bigint ORDER BY fence DESC OFFSET $2::int LIMIT 1`,
    [below, limits.scanRows - 1],
  )
  return { rows: found.map(viewOf), cursor: end === undefined ? null : text(end, 'fence') }
}

/** A look at the whole table, which no index can spare: the server gives up when the caller does. */
async function countRecords(on: Borrowed, names: Names, filter: RecordFilter, timeoutMs: number): Promise<StateCounts> {
  const values: unknown[] = []
  const where = conditions(filter, values)
  const begin = `BEGIN READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(timeoutMs)}`
  const found = await inTransaction(on.connection, begin, () =>
    on.rows(
      `SELECT r.state, count(*) AS count
       FROM (SELECT ${nowSql(names)} AS now) AS m, ${names.records} AS r
       WHERE ${visible('m.now')} AND ${where} GROUP BY r.state`,
      values,
    ),
  )
  const counts = new Map(found.map((row) => [Number(row['state']), Number(row['count'])]))
  const total = (state: VisibleState) => codesOf[state].reduce((sum, code) => sum + (counts.get(code) ?? 0), 0)
  return Object.fromEntries(visibleStates.map((state) => [state, total(state)])) as StateCounts
}

async function busiestCallers({ rows }: Borrowed, names: Names, since: number, limit: number): Promise<BusyCaller[]> {
  const found = await rows(
    `SELECT tenant, caller, operation, sum(claims) AS claims, sum(replays) AS replays, sum(conflicts) AS conflicts,
       sum(in_progress) AS in_progress
     FROM ${names.tallies} WHERE bucket_at + ${limits.tallyBucketMs} > $1::bigint
     GROUP BY tenant, caller, operation
     ORDER BY sum(claims) + sum(replays) + sum(conflicts) + sum(in_progress) DESC, tenant, caller, operation LIMIT $2::int`,
    [Math.floor(since), limit],
  )
  return found.map((row) => ({
    tenant: text(row, 'tenant'),
    caller: text(row, 'caller'),
    operation: text(row, 'operation'),
    claims: Number(row['claims']),
    replays: Number(row['replays']),
    conflicts: Number(row['conflicts']),
    inProgress: Number(row['in_progress']),
  }))
}

function viewOf(row: TextRow): RecordView {
  const repeatedAt = row['repeated_at'] ?? null
  return {
    record: recordOf(row),
    replays: Number(row['replays']),
    conflicts: Number(row['conflicts']),
    inProgress: Number(row['in_progress']),
    repeatedAt: repeatedAt === null ? null : Number(repeatedAt),
  }
}
