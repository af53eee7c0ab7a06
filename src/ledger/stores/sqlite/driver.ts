import { DatabaseSync } from 'node:sqlite'
import { OnceError } from '../../core/errors.ts'
import { kindOf } from '../../core/option-names.ts'

/** What the store uses of a connection: that of `node:sqlite`, or another driver's by these names. */
export interface Database {
  readonly isOpen: boolean
  readonly isTransaction: boolean
  exec(text: string): void
  prepare(text: string): Prepared
  function(name: string, work: (...values: unknown[]) => bigint | null): void
  close(): void
}

export interface Prepared {
  readonly sourceSQL: string
  get(...values: BoundValue[]): Record<string, unknown> | undefined
  all(...values: BoundValue[]): Record<string, unknown>[]
  run(...values: BoundValue[]): { readonly changes: number | bigint }
  setReadBigInts(on: boolean): void
}

export type BoundValue = string | number | bigint | null | Uint8Array

/** What is used of `Database`, the class of `better-sqlite3`. */
export type SqliteDriver = new (path: string, options: { timeout: number; readonly: boolean }) => SqliteDriverDatabase

/** A connection of `better-sqlite3`. */
export interface SqliteDriverDatabase {
  readonly open: boolean
  readonly inTransaction: boolean
  exec(text: string): unknown
  prepare(text: string): SqliteDriverStatement
  // oxlint-disable-next-line typescript/no-explicit-any -- its functions take whatever SQL gives them.
  function(name: string, work: (...values: any[]) => unknown): unknown
  close(): unknown
}

/** A statement of `better-sqlite3`. */
export interface SqliteDriverStatement {
  /** Whether it gives rows; the others throw when they are asked for some. */
  readonly reader: boolean
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
  run(...values: unknown[]): { readonly changes: number }
  safeIntegers(on: boolean): unknown
}

/** Opens the file; the reader of a migration takes it as it is. */
export type OpenDatabase = (path: string, how?: { readonly readOnly: boolean }) => Database

/**
 * No busy time-out, whatever the driver: SQLite would sleep inside the call, and with it every request of this process.
 */
const TIMEOUT_MS = 0

export function openBy(driver: SqliteDriver | undefined): OpenDatabase {
  if (driver === undefined) {
    return (path, { readOnly } = { readOnly: false }) =>
      new DatabaseSync(path, { timeout: TIMEOUT_MS, readOnly }) as Database
  }
  if (typeof driver !== 'function') {
    const text = `The option \`driver\` of sqliteStore is ${kindOf(driver)}; give it the class of better-sqlite3: \`import Database from 'better-sqlite3'\`.`
    throw new OnceError('bad_option', text, { details: { option: 'driver' } })
  }
  return (path, { readOnly } = { readOnly: false }) =>
    adapted(new driver(path, { timeout: TIMEOUT_MS, readonly: readOnly }))
}

/** The same calls under the names of `node:sqlite`. */
function adapted(db: SqliteDriverDatabase): Database {
  /** A function without arguments may ask the database, which this driver allows only before the statement begins. */
  const sources = new Map<string, () => bigint | null>()
  const early = new Map<string, bigint | null>()

  function prepare(text: string): Prepared {
    const statement = db.prepare(text)
    const { reader } = statement
    const asked = [...sources].filter(([name]) => text.includes(`${name}()`))
    const before = () => {
      for (const [name, work] of asked) early.set(name, work())
    }
    return {
      sourceSQL: text,
      get: (...values) => {
        before()
        return statement.get(...values) as Record<string, unknown> | undefined
      },
      all: (...values) => {
        before()
        if (reader) return statement.all(...values) as Record<string, unknown>[]
        statement.run(...values)
        return []
      },
      run: (...values) => {
        before()
        return reader ? { changes: statement.all(...values).length } : statement.run(...values)
      },
      setReadBigInts: (on) => void statement.safeIntegers(on),
    }
  }

  return {
    get isOpen() {
      return db.open
    },
    get isTransaction() {
      return db.inTransaction
    },
    exec: (text) => void db.exec(text),
    prepare,
    function: (name, work) => {
      if (work.length === 0) sources.set(name, work)
      db.function(name, work.length === 0 ? () => early.get(name) ?? null : work)
    },
    close: () => void db.close(),
  }
}
