import type { SqlRow } from './sql.ts'

/** A value as every ORM sends it; arrays travel as the text of the server. */
export type OrmValue = string | number | bigint | boolean | null | Uint8Array

/**
 * Transactions of an ORM: `kysely(db)`, `drizzle(db)`, and the others. The ledger needs no more of an ORM than to open a
 * transaction and to send a statement on its connection.
 */
export interface OrmTransactions<Handle> {
  /** For messages: `kysely`. */
  readonly name: string
  /** The database behind it. */
  readonly dialect: 'postgres' | 'sqlite'
  /**
   * How long a claim may wait for a twin, in ms, inside of a transaction that the ORM ends after a time of its own.
   * @default 5_000
   */
  readonly claimWaitMs?: number
  /** Runs the work in a new transaction, READ COMMITTED on PostgreSQL. Rolls back when it throws. */
  open<T>(work: (handle: Handle) => Promise<T>, call: OpenCall): Promise<T>
  /** One statement on the connection of the transaction, `$1` for the first value, on SQLite `?`. Answers its rows. */
  query(handle: Handle, text: string, values: readonly OrmValue[]): Promise<readonly SqlRow[]>
  /** Whether it is an open transaction, and not the ORM itself. */
  isTransaction(handle: unknown): boolean
  /**
   * A part of the transaction that is undone alone when the work throws, for an ORM that must know of it: it has a handle
   * of its own for each. Others get a savepoint as a statement.
   */
  savepoint?<T>(handle: Handle, work: (inner: Handle) => Promise<T>): Promise<T>
  /**
   * Whether the ORM calls code of the user between the last statement and COMMIT. A statement that fails there, and whose error
   * is hidden, makes the server roll back without an error: then the ledger asks the server whether it has committed.
   * @default false
   */
  readonly hooksBeforeCommit?: boolean
  /** Sends what the handle has only collected so far: a unit of work. */
  flush?(handle: Handle): Promise<void>
  /** The server's error behind one of the ORM's, where `cause` does not lead to it; null when there is none. */
  serverError?(error: unknown): ServerFault | null
}

/** How long an ORM may take to run a transaction. */
export interface OpenCall {
  /** In ms; an ORM with a limit of its own sets it to this. */
  readonly timeoutMs: number
}

/** What a database server answers when it refuses a statement. */
export interface ServerFault {
  /** The SQLSTATE. */
  readonly code: string
  /** The server's words. */
  readonly message: string
}
