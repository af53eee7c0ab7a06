import type { OrmValue } from '../../store/orm.ts'
import type { SqlRow } from '../../store/sql.ts'
import type { TextRow } from './statement.ts'
import { arrayText } from './statement.ts'

/** Values and rows on their way through an ORM, whose plugins and parsers may change both. */

/** As every driver sends it: ORMs write arrays and large numbers each in their own way. */
export function ormValue(value: unknown): OrmValue {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return arrayText(value)
  if (typeof value === 'bigint') return String(value)
  return value as OrmValue
}

/** Every value as the server writes it, whatever a parser has made of it. */
export function textOf(row: SqlRow): TextRow {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, valueText(value)]))
}

function valueText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return value ? 't' : 'f'
  return String(value)
}

/** The words of a statement that may be names of columns, by what is left of them without case and underscores. */
type Words = ReadonlyMap<string, string>

/** Our statements are constants, and few. */
const TEXTS = 1_000
const wordsOf = new Map<string, Words>()
const WORD = /[a-z][a-z0-9_]*/gi

const bare = (name: string) => name.replaceAll('_', '').toLowerCase()

function wordsIn(text: string): Words {
  const known = wordsOf.get(text)
  if (known !== undefined) return known
  const words = new Map<string, string>()
  for (const [word] of text.matchAll(WORD)) words.set(bare(word), word)
  // Exact names count before those that only look like them.
  for (const [word] of text.matchAll(WORD)) words.set(word, word)
  if (wordsOf.size >= TEXTS) wordsOf.clear()
  wordsOf.set(text, words)
  return words
}

/**
 * Rows under the names that the statement has: plugins such as Kysely's `CamelCasePlugin` rename columns of every result,
 * also of ours. Large numbers arrive as text, as `pg` gives them.
 */
export function withColumnsOf(text: string, rows: readonly SqlRow[]): readonly SqlRow[] {
  const [first] = rows
  if (first === undefined) return rows
  const words = wordsIn(text)
  const names = Object.keys(first).map((name) => [name, words.get(name) ?? words.get(bare(name)) ?? name] as const)
  return rows.map((row) =>
    Object.fromEntries(
      names.map(([given, name]) => [name, typeof row[given] === 'bigint' ? `${row[given]}` : row[given]]),
    ),
  )
}
