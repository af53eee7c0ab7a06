/** What every SQL store gives to effects and to the rooms that keep tables of their own. */

import { OnceError } from '../core/errors.ts'
import type { Dialect } from './dialect.ts'
import type { Watch } from './watch.ts'

export type SqlValue = string | number | bigint | boolean | null | Uint8Array
export type SqlRow = Readonly<Record<string, unknown>>

/** What is written for a database that rooms may keep their tables in. */
export interface RoomDialect extends Dialect<'sqlite' | 'postgres'> {
  /** The names of all tables that statements reach without naming a schema, as `name`. */
  readonly tableNames: string
  readonly rowPlace: RowPlace
  /** Statements that make the database refuse to change or delete rows of a table. */
  appendOnly(table: string, refusal: string): readonly string[]
}

/** How a row is found again, whatever its key is: its place in the table. */
export interface RowPlace {
  readonly column: string
  /** Stands in a statement for the value of a place. */
  readonly value: string
  /** Before all others. */
  readonly first: string
  /** A place that was read as text, as a value. */
  valueOf(place: string): SqlValue
}

/** A row by its columns: texts, numbers, which PostgreSQL gives as text, and texts that may be null. */
export type RowOf<Texts extends string, Numbers extends string, Nullable extends string = never> = Readonly<
  Record<Texts, string> & Record<Numbers, unknown> & Record<Nullable, string | null>
>

/** A column that may be null, as a number: PostgreSQL answers a bigint as text. */
export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}

export interface SqlTx {
  /**
   * `?` stands for a value, on every SQL store, and on PostgreSQL `??` for a question mark. Answers the rows that the
   * statement gave.
   */
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[]): Promise<readonly Row[]>
  /** For statements that may fail as expected: a violation inside it leaves the transaction usable. */
  inSavepoint<T>(work: () => Promise<T>): Promise<T>
}

/** One statement of a script. */
export interface Statement {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/**
 * A short transaction that waits for nothing but its own statements: it yields each of them and gets its rows back. So a
 * store whose driver is synchronous runs it at once, and scripts of several callers share one commit. A statement that
 * fails ends it.
 */
export type Script<T> = Generator<Statement, T, readonly SqlRow[]>

export interface SqlSeam {
  readonly dialect: RoomDialect
  /**
   * The text as it is written to a column that holds what other people may not read: encrypted where the store has keys.
   * Rows that a statement gives are decrypted already. Columns are declared in the migration that makes them.
   */
  secret<T extends string | null>(text: T): T
  /** The same for a column that rows are looked for by: equal texts are equal. */
  lookup<T extends string | null>(text: T): T
  /** Brings one room's tables up to date; safe from many processes at once. */
  migrate(room: string, migrations: readonly Migration[]): Promise<void>
  /** The SQL that `migrate` would still run for the ledger's tables and for these rooms. Changes nothing. */
  pendingSql(rooms: Readonly<Record<string, readonly Migration[]>>): Promise<readonly string[]>
  /** A single statement outside any transaction. */
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[], how?: QueryHow): Promise<readonly Row[]>
  /**
   * Runs a script in one transaction, which commits before it answers and is rolled back when the script throws. `begin` may
   * be called more than once, each time after a rollback: the script must change nothing but rows.
   */
  script<T>(begin: () => Script<T>): Promise<T>
  /**
   * An SQL expression: the store's time in whole milliseconds, also inside a transaction, where it does not stand
   * still.
   */
  readonly now: string
  /**
   * An SQL expression that wakes those who listen to the topic, in every process, when its transaction commits. It must be
   * evaluated by a statement.
   */
  wake(topic: RoomTopic): string
  /**
   * Listeners hear at once of what wakes their topic, and of any other change of the store, by whichever process, within a
   * second, or five when it is the first change of a store that was quiet. So they need no poll of their own to find out
   * what others wrote: they sleep until something of theirs is due. A wake is a hint: it may come for nothing, and rarely it
   * is lost, so that they look now and then all the same (`limits.safetyPollMs`).
   */
  listen(topic: RoomTopic, wake: (cause: WakeCause) => void): Watch
}

/**
 * `topic`: the listener's own topic was woken, or may have been while notifications were lost. `change`: any other change of
 * the store; on SQLite every commit of another process.
 */
export type WakeCause = 'topic' | 'change'

/** Wakes the listeners of all topics: what moves the store's clock makes anything due. */
export const EVERY_TOPIC = '*'

export interface QueryHow {
  /**
   * For the few statements that a room repeats all day: parsed and planned once, on a connection of the store's own.
   * The text must be a constant, and find its rows by an index.
   */
  readonly hot?: boolean
  /**
   * For renewals of leases, which only keep things as they are: no listener is woken by them where the store can tell them
   * apart, and after a power failure they may be missing. The statement writes, and ends with RETURNING.
   */
  readonly quiet?: boolean
}

/** A constant of the room that listens: lower-case letters, digits and colons, because it becomes part of the SQL. */
export type RoomTopic = string

/** Throws rather than quote what should have been a constant. */
export function checkRoomTopic(topic: RoomTopic): RoomTopic {
  if (/^[a-z][a-z0-9:]{0,60}$/.test(topic)) return topic
  throw new OnceError('bad_option', `\`${topic}\` is no topic of a room.`)
}

/** Forward only. Rolling deploys work because a migration names the oldest code that may run on its result. */
export interface Migration {
  /** Consecutive from 1. */
  readonly version: number
  /** The code knows migrations up to a version; code that knows fewer than this refuses to start. */
  readonly oldestCode: number
  up(dialect: RoomDialect): readonly string[]
  /** Columns that are written with `secret` or `lookup` of the seam, by their table. @default none */
  readonly encrypted?: EncryptedColumns
}

/** How a column is kept: for reading alone, or for looking for its rows as well. */
export type ColumnKind = 'secret' | 'lookup'
/** Columns that hold encrypted texts where the store has keys, by their table. */
export type EncryptedColumns = Readonly<Record<string, Readonly<Record<string, ColumnKind>>>>
