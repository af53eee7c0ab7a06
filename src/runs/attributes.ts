import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { kindOf } from '../ledger/core/option-names.ts'
import type { Script, SqlRow, SqlSeam, SqlValue } from '../ledger/store/sql.ts'
import type { Attributes, AttributeValue } from './entry.ts'
import { checkName } from './names.ts'

export function checkAttributes(given: unknown): asserts given is Attributes {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OnceError('bad_input', `Attributes are an object of names and values, not ${kindOf(given)}.`)
  }
  const names = Object.keys(given)
  if (names.length > limits.runAttributes) {
    throw new OnceError('bad_input', `A run has at most ${limits.runAttributes} attributes, not ${names.length}.`)
  }
  for (const name of names) {
    checkName('attribute', name)
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (value !== null) textOf(name, value)
  }
}

/** As it is kept: values of different kinds are different texts. */
function textOf(name: string, value: unknown): string {
  const fits = typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)) || isShort(value)
  if (fits) return JSON.stringify(value)
  const most = `up to ${limits.runAttributeChars} characters`
  throw new OnceError('bad_input', `The attribute ${name} is text of ${most}, a finite number, a boolean or null.`)
}

function isShort(value: unknown): boolean {
  return typeof value === 'string' && value.length <= limits.runAttributeChars && value.isWellFormed()
}

const columns = { run_id: 'text', name: 'text', value: 'text' } as const

/** Sets attributes of a run, in the transaction of the caller. */
export function* setAttributes(sql: SqlSeam, runId: string, given: Attributes): Script<void> {
  const removed = Object.keys(given).filter((name) => given[name] === null)
  if (removed.length > 0) {
    yield {
      text: `delete from onceonly_run_attributes where run_id = ?
        and name in (select name from ${sql.dialect.recordsOf({ name: 'text' })})`,
      values: [runId, JSON.stringify(removed.map((name) => ({ name })))],
    }
  }
  const set = Object.entries(given).flatMap(([name, value]) =>
    value === null ? [] : [{ run_id: runId, name, value: sql.lookup(textOf(name, value)) }],
  )
  if (set.length === 0) return
  yield {
    text: `insert into onceonly_run_attributes (run_id, name, value)
      select run_id, name, value from ${sql.dialect.recordsOf(columns)} where true
      ${sql.dialect.upsert(['run_id', 'name'], { value: 'excluded.value' })}`,
    values: [JSON.stringify(set)],
  }
}

/** Of these runs, by their ids. */
export async function attributesOf(
  { query, dialect }: SqlSeam,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, Readonly<Record<string, AttributeValue>>>> {
  if (runIds.length === 0) return new Map()
  const rows = await query(
    `select run_id, name, value from onceonly_run_attributes
      where run_id in (select run_id from ${dialect.recordsOf({ run_id: 'text' })}) order by name`,
    [JSON.stringify(runIds.map((run_id) => ({ run_id })))],
  )
  const byRun = Map.groupBy(rows, (row) => row['run_id'] as string)
  return new Map([...byRun].map(([runId, list]) => [runId, Object.fromEntries(list.map(read))]))
}

function read(row: SqlRow): [string, AttributeValue] {
  return [row['name'] as string, JSON.parse(row['value'] as string) as AttributeValue]
}

/** Conditions on runs, with their values: those that have all of these attributes. */
export function attributeFilters(sql: SqlSeam, wanted: Attributes): [text: string, ...SqlValue[]][] {
  checkAttributes(wanted)
  return Object.entries(wanted).map(([name, value]) =>
    value === null
      ? ['not exists (select 1 from onceonly_run_attributes a where a.run_id = onceonly_runs.id and a.name = ?)', name]
      : [
          'id in (select run_id from onceonly_run_attributes where name = ? and value = ?)',
          name,
          sql.lookup(textOf(name, value)),
        ],
  )
}
