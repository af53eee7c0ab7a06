import { OnceError } from '../core/errors.ts'
import { kindOf } from '../core/option-names.ts'
import type { OrmTransactions } from '../store/orm.ts'

export interface Expected {
  /** Names of its functions. */
  readonly with: readonly string[]
  /** As a message says it: a `Kysely` instance. */
  readonly wants: string
}

/** The likeliest mistake of a first use: the pool, the settings, or nothing. */
export function checkHandle(entry: string, given: unknown, { with: names, wants }: Expected): void {
  const fits = (name: string) => typeof (given as Record<string, unknown> | null | undefined)?.[name] === 'function'
  if (names.every(fits)) return
  throw new OnceError('bad_option', `${entry} needs ${wants}, not ${kindOf(given)}.`)
}

/** What is opened on an open transaction is only a part of it: its commit would be none. */
export function refuseTransaction(entry: string, isTransaction: boolean, { wants }: Expected): void {
  if (!isTransaction) return
  const text = `${entry} needs ${wants}, not a transaction that is open already. Give that to \`within\`.`
  throw new OnceError('bad_option', text)
}

const POSTGRES = /^(?:pg|postgres|cockroach|redshift|aurora-postgres)/i
const SQLITE = /sqlite/i

/**
 * An ORM on another database would fail at its first statement, with an error of its driver.
 *
 * @param database what the ORM calls it: `sqlite3`, `MysqlAdapter`; anything else is taken for PostgreSQL
 */
export function refuseOtherDatabase(entry: string, database: unknown): void {
  if (typeof database !== 'string' || POSTGRES.test(database)) return
  throw otherDatabase(entry, 'PostgreSQL', database)
}

/** The same for an ORM whose transactions on SQLite are each alone on their connection. */
export function databaseOf(entry: string, database: unknown): OrmTransactions<never>['dialect'] {
  if (typeof database !== 'string' || POSTGRES.test(database)) return 'postgres'
  if (SQLITE.test(database)) return 'sqlite'
  throw otherDatabase(entry, 'PostgreSQL or SQLite', database)
}

function otherDatabase(entry: string, needed: string, database: string): OnceError {
  const text = `${entry} needs ${needed}, and this one is on ${database}. Leave \`transactions\` out: an effect writes with \`tx.query\` of sqliteStore(path) or mariadbStore(pool), in the transaction of its record.`
  return new OnceError('bad_option', text, { details: { option: 'transactions' } })
}

/** The name of the class that an ORM has for a kind of database. */
export function classOf(part: unknown): unknown {
  return (part as object | null | undefined)?.constructor.name
}
