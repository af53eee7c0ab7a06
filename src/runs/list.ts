import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { checkOptions, wholeOption } from '../ledger/core/option-names.ts'
import type { SqlSeam, SqlValue } from '../ledger/store/sql.ts'
import { attributeFilters, attributesOf } from './attributes.ts'
import type { Attributes, RunState } from './entry.ts'
import { runColumns, runOf } from './stored.ts'
import { scopeSql } from './tables.ts'
import type { RunView } from './view.ts'
import { summaryOf } from './view.ts'

export interface RunQuery {
  readonly state?: RunState
  readonly definition?: string
  /** Only runs that were enqueued there. */
  readonly queue?: string
  /** Only runs whose ids have this before their first slash: for services that put the tenant there. */
  readonly scope?: string
  /** Only children of this run. */
  readonly parent?: string
  /** Only runs with these attributes; null for those that do not have one. */
  readonly attributes?: Attributes
  /** Only runs that were started at this time or later, in milliseconds since 1970. */
  readonly startedFrom?: number
  /** Only runs that were started before this time, in milliseconds since 1970. */
  readonly startedBefore?: number
  readonly limit?: number
  /** Give back what the page before gave. */
  readonly cursor?: string | null
}

export interface RunPage {
  readonly runs: readonly Omit<RunView, 'steps'>[]
  readonly cursor: string | null
}

const names = {
  state: true,
  definition: true,
  queue: true,
  scope: true,
  parent: true,
  attributes: true,
  startedFrom: true,
  startedBefore: true,
  limit: true,
  cursor: true,
} satisfies Record<keyof RunQuery, true>

/** A page of runs, newest first. */
export async function listRuns(sql: SqlSeam, wanted: RunQuery): Promise<RunPage> {
  checkOptions('`list`', wanted, names)
  const { limit = limits.pageRows } = wanted
  if (!Number.isSafeInteger(limit) || limit < 1) throw new OnceError('bad_option', 'A page has 1 run or more.')
  const { text, values } = filterOf(sql, wanted)
  const rows = await sql.query(
    `select ${runColumns} from onceonly_runs ${text} order by started_at desc, id desc limit ?`,
    [...values, Math.min(limit, limits.pageRows)],
  )
  const runs = rows.map(runOf)
  const ids = runs.map(({ id }) => id)
  const attributes = await attributesOf(sql, ids)
  const last = runs.at(-1)
  const full = runs.length === Math.min(limit, limits.pageRows)
  return {
    runs: runs.map((each) => summaryOf(each, attributes.get(each.id))),
    cursor: full && last !== undefined ? `${last.startedAt} ${last.id}` : null,
  }
}

function timeOf(name: string, ms: number): number {
  return wholeOption('`list`', name, ms, 0)
}

/** Only what is asked for stands in the text, so that the index that fits is found. */
function filterOf(
  sql: SqlSeam,
  { state, definition, queue, scope, parent, attributes = {}, startedFrom, startedBefore, cursor = null }: RunQuery,
): { readonly text: string; readonly values: readonly SqlValue[] } {
  const parts: [text: string, ...SqlValue[]][] = []
  if (scope !== undefined) parts.push([`${scopeSql(sql.dialect)} = ?`, scope])
  // One of our own words, and in the text, because an index for one state is found only so.
  if (state !== undefined) parts.push(state === 'unknown' ? ["state = 'unknown'"] : ['state = ?', state])
  if (definition !== undefined) parts.push(['definition = ?', definition])
  if (queue !== undefined) parts.push(['queue = ?', queue])
  if (parent !== undefined) parts.push(['parent = ?', parent])
  if (startedFrom !== undefined) parts.push(['started_at >= ?', timeOf('startedFrom', startedFrom)])
  if (startedBefore !== undefined) parts.push(['started_at < ?', timeOf('startedBefore', startedBefore)])
  parts.push(...attributeFilters(sql, attributes))
  if (cursor !== null) parts.push(['(started_at, id) < (?, ?)', ...readCursor(cursor)])
  const text = parts.length === 0 ? '' : `where ${parts.map(([condition]) => condition).join(' and ')}`
  return { text, values: parts.flatMap(([, ...values]) => values) }
}

function readCursor(cursor: string): [number, string] {
  const space = cursor.indexOf(' ')
  const before = Number(cursor.slice(0, space))
  if (space < 1 || !Number.isSafeInteger(before))
    throw new OnceError('bad_option', '`cursor` must be one that an earlier page returned.')
  return [before, cursor.slice(space + 1)]
}
