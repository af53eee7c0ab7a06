/** What every SQL store gives to effects and to the rooms that keep tables of their own. */

export type SqlValue = string | number | bigint | boolean | null | Uint8Array
export type SqlRow = Readonly<Record<string, unknown>>
export type Dialect = 'sqlite' | 'postgres'

export interface SqlTx {
  /** `?` stands for a value, on every SQL store. Answers the rows that the statement gave. */
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /** For statements that may fail as expected: a violation inside it leaves the transaction usable. */
  inSavepoint<T>(work: () => Promise<T>): Promise<T>
}

export interface SqlSeam {
  readonly dialect: Dialect
  /** Brings one room's tables up to date; safe from many processes at once. */
  migrate(room: string, migrations: readonly Migration[]): Promise<void>
  /** A single statement outside any transaction. */
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
}

/** Forward only. Rolling deploys work because a migration names the oldest code that may run on its result. */
export interface Migration {
  /** Consecutive from 1. */
  readonly version: number
  /** The code knows migrations up to a version; code that knows fewer than this refuses to start. */
  readonly oldestCode: number
  readonly up: Readonly<Record<Dialect, readonly string[]>>
}

/** Turns `?` into `$1`, `$2`, … outside of strings, quoted names, dollar quotes and comments. */
export function numberPlaceholders(text: string): string {
  let count = 0
  return text.replace(
    /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$([A-Za-z_]*)\$[\s\S]*?\$\1\$|\?/g,
    (found) => (found === '?' ? `$${++count}` : found),
  )
}
