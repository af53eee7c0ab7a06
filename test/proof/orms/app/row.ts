import type { OrmTransactions } from 'onceonly/kysely'
import type { SqliteDriver } from 'onceonly/sqlite'

/** One ORM, as an application has it. A new ORM is a file in `rows` and a line in `rows.ts`. */
export interface OpenedOrm<Tx> {
  readonly transactions: OrmTransactions<Tx>
  /** Inserts a row into `orders (name text primary key)` in the ORM's own way. */
  insert(tx: Tx, name: string): Promise<void>
  /** Opens a transaction as users do. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** A transaction inside of one; null where the ORM has none. */
  readonly nested: ((tx: Tx, work: (inner: Tx) => Promise<void>) => Promise<void>) | null
  /** A statement as text. */
  raw(tx: Tx, text: string): Promise<unknown>
  close(): Promise<void>
  /** Lets the next transaction fail between its last statement and COMMIT, and hides the error; where the ORM has hooks. */
  failBeforeCommit?(): void
}

/** How an ORM reaches its server. */
export interface Connections {
  /** At most so many. */
  readonly max: number
  /** False behind a pooler that keeps no named statements, for drivers that name theirs unasked. */
  readonly prepare: boolean
}

export const usual: Connections = { max: 10, prepare: true }

export interface OrmRow {
  readonly name: string
  /** Its name in `rows.ts`. */
  readonly file?: string
  /** Names of cases that it cannot pass, each with the reason. */
  readonly skips: Readonly<Record<string, string>>
  /** On SQLite: what opens the file of the store, as the ORM does. */
  readonly sqlite?: { readonly driver?: SqliteDriver }
  /** Opens the ORM on a database, or on a file of SQLite. */
  open(url: string, connections?: Connections): Promise<OpenedOrm<unknown>>
}

/** Keeps the types of a row inside of its file. */
export function row<Tx>(
  name: string,
  open: (url: string, connections: Connections) => Promise<OpenedOrm<Tx>>,
  skips: OrmRow['skips'] = {},
): OrmRow {
  return { name, skips, open: (url, connections = usual) => open(url, connections) as Promise<OpenedOrm<unknown>> }
}

/** The same on a file of SQLite. */
export function fileRow<Tx>(
  name: string,
  sqlite: { readonly driver?: SqliteDriver },
  open: (path: string) => Promise<OpenedOrm<Tx>>,
): OrmRow {
  return { ...row(name, open), sqlite }
}

/** By itself postgres.js ends the process then: it writes to a socket that is gone. */
export const crashesWithSession = {
  'a session that is ended under its effect is tried again': 'postgres.js cannot bear the end of a session',
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Compiles only where both are the same type: `sameType<A, B>(true)`. */
export function sameType<A, B>(same: Same<A, B>): boolean {
  return same
}
