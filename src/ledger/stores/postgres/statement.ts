import { sha256Hex } from '../../core/digest.ts'
import type { PgQuery, PgResult } from './driver.ts'
import { quoteText } from './names.ts'

/** A statement of ours. Batch connections prepare it under its name. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Every value of ours arrives as the server's text, whatever parsers the user gave to `pg`. */
export type TextRow = Readonly<Record<string, string | null>>

/** Where a statement of ours runs: on a batch connection, or inside a transaction. */
export interface Executor {
  run(statement: Statement, values: unknown[]): Promise<readonly TextRow[]>
}

/** A connection, or a transaction on one. */
interface Sender {
  query(query: PgQuery): Promise<PgResult>
}

/** Hands the server's text through, whatever parsers the user gave to the driver. */
export const asText = { getTypeParser: () => (text: string) => text }

/**
 * For our own connections: parsed and planned once. Their session settings rule out the plans that would turn bad as
 * the table grows.
 */
export function preparedOn(connection: Sender): Executor {
  return {
    run: async ({ name, text }, values) => {
      const { rows } = await connection.query({ name, text, values, types: asText })
      return rows as readonly TextRow[]
    },
  }
}

/**
 * For borrowed connections, whose settings are the user's: planned for each call, a tenth of a millisecond, because a
 * plan that is kept from the time when the table was small reads all of it when it is large.
 */
export function plannedOn(connection: Sender): Executor {
  return {
    run: async ({ text }, values) => {
      const { rows } = await connection.query({ text, values, types: asText })
      return rows as readonly TextRow[]
    },
  }
}

/** A statement that is prepared by SQL, so that it can stand in a message of several statements. */
export interface Script {
  /** Its name stands for its text: whatever prepared it on this connection, it is the same. */
  readonly name: string
  readonly prepare: string
  /** Null when a value cannot be written out: text ends at a NUL character. */
  execute(values: readonly unknown[]): string | null
  /** The same without anything that was prepared. */
  inline(values: readonly unknown[]): string | null
}

/** A script where prepared statements stay, or one that stands for itself. */
export type ScriptForm = 'execute' | 'inline'

export function scriptOf(text: string): Script {
  const name = `onceonly_${sha256Hex(text).slice(0, 16)}`
  return {
    name,
    prepare: `PREPARE ${name} AS ${text}`,
    execute: (values) => {
      if (values.some((value) => typeof value === 'string' && value.includes('\0'))) return null
      return `EXECUTE ${name} (${values.map(literal).join(', ')})`
    },
    inline: (values) => inlined(text, values),
  }
}

/**
 * A text of ours with its values written into it, so that it can stand in a message of several statements. Each is a quoted
 * literal, whose type the server finds as it would find that of `$1`. Null when a value cannot be written out.
 */
export function inlined(text: string, values: readonly unknown[]): string | null {
  const written = values.map((value) => valueText(value))
  if (written.some((value) => value?.includes('\0'))) return null
  return text.replace(/\$(\d+)/g, (_found, place: string) => literal(written[Number(place) - 1]))
}

function valueText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return value.length === 0 ? '{}' : (arraysOf(value.map((one) => [one]))[0] ?? null)
  return String(value)
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number') return String(value)
  const text = String(value)
  // A backslash means itself or not, by a setting of the session; with E it always escapes.
  return text.includes('\\') ? `E${quoteText(text.replaceAll('\\', '\\\\'))}` : quoteText(text)
}

/**
 * The columns of many rows, each as one array of the server's. The driver would write them too, with two regular
 * expressions for every value, which was a tenth of a batch.
 */
export function arraysOf(rows: readonly (readonly unknown[])[]): string[] {
  const arrays: string[] = []
  for (const [place, row] of rows.entries()) {
    const before = place === 0 ? '{' : ','
    for (let column = 0; column < row.length; column++) {
      arrays[column] = `${arrays[column] ?? ''}${before}${element(row[column])}`
    }
  }
  return arrays.map((array) => `${array}}`)
}

/** One array as the server writes it. */
export function arrayText(values: readonly unknown[]): string {
  return `{${values.map(element).join(',')}}`
}

function element(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number') return String(value)
  const text = String(value)
  return text.includes('"') || text.includes('\\') ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : `"${text}"`
}

/**
 * `awaited` as the store keeps it. A settle cannot answer what a column held before it, so it leaves a trace: 2 stands
 * for "was awaited until it was settled", and reads as not awaited.
 */
export const awaitedCode = { no: 0, yes: 1, was: 2 } as const

/** PostgreSQL writes a uuid with dashes; a record id has none. */
export function plainId(uuid: string): string {
  return uuid.replaceAll('-', '')
}

export function text(row: TextRow, column: string): string {
  return row[column] ?? ''
}
