import { digestParts } from '../../core/digest.ts'
import { OnceError } from '../../core/errors.ts'
import { exceedsBytes } from '../../core/identity.ts'

/** Where the tables are. Without a schema of their own they live where the connection's `search_path` leads. */
export interface Names {
  readonly schema: string | null
  readonly records: string
  /** The records for people with SQL. */
  readonly recordsView: string
  readonly unknowns: string
  readonly fences: string
  /** How far tests have moved the store's time: a function without arguments. */
  readonly clockOffset: string
  readonly tallies: string
  readonly migrations: string
  /** The channel of notifications. A wake is a hint, so stores that share one only look once too often. */
  readonly channel: string
  /** The advisory lock of migrations; a number, because advisory locks have no names. */
  readonly migrationLock: string
}

/** PostgreSQL silently cuts longer names, and two schemas could become one. */
const NAME_BYTES = 63

export function namesIn(schema: string | undefined): Names {
  if (schema !== undefined && (schema === '' || schema.includes('\0') || exceedsBytes(schema, NAME_BYTES))) {
    throw new OnceError('bad_option', `\`schema\` must be a name of 1 to ${NAME_BYTES} bytes.`)
  }
  const prefix = schema === undefined ? '' : `${quoteName(schema)}.`
  const digest = digestParts(['onceonly', schema ?? null])
  return {
    schema: schema ?? null,
    records: `${prefix}onceonly_records`,
    recordsView: `${prefix}onceonly_records_view`,
    unknowns: `${prefix}onceonly_unknowns`,
    fences: `${prefix}onceonly_fences`,
    clockOffset: `${prefix}onceonly_clock_offset()`,
    tallies: `${prefix}onceonly_tallies`,
    migrations: `${prefix}onceonly_migrations`,
    channel: `onceonly_${digest.slice(0, 16)}`,
    migrationLock: lockKey(digest),
  }
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Half of a digest as the signed 64-bit number that an advisory lock is. */
function lockKey(hex: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`)).toString()
}

/**
 * Unqualified names lead to our own tables first, and only then to those of the user's path: the rooms' SQL is the same
 * on every store, so it cannot name the schema itself, and tables of another store may stand in that path.
 */
export function findOwnTables(names: Names, within: 'transaction' | 'session'): string {
  if (names.schema === null) return ''
  const own = quoteText(quoteName(names.schema))
  return `SELECT set_config('search_path', concat_ws(', ', ${own}, nullif(current_setting('search_path'), '')), ${within === 'transaction'});`
}

/**
 * An advisory lock for one record of this store. Locks are shared by the whole database, so the table is part of the
 * key: also two stores that differ only in the `search_path` of their connections have two.
 */
export function recordLock(names: Names, id: string): string {
  return `hashtextextended(${quoteText(id)}, ${quoteText(names.records)}::regclass::oid::bigint)`
}
