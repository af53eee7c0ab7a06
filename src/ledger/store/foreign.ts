import { OnceError } from '../core/errors.ts'
import type { OrmTransactions } from './orm.ts'
import type { AdoptedTransactions, ForeignTransactions } from './port.ts'
import type { SqlTx } from './sql.ts'

const transactionOf = new WeakMap<object, SqlTx>()

/** Remembers which transaction an ORM's handle stands for. */
export function noteSql(handle: unknown, sql: SqlTx): void {
  if (isKey(handle)) transactionOf.set(handle, sql)
}

/** The transaction behind the `tx` of an effect: that of an ORM, or `tx` itself. */
export function sqlBehind(tx: unknown): SqlTx {
  return (isKey(tx) ? transactionOf.get(tx) : undefined) ?? (tx as SqlTx)
}

function isKey(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

const methods = ['open', 'query', 'isTransaction'] as const

/** @param caller the function that was given something as its `transactions` */
function checkOrm(caller: string, orm: unknown): void {
  const given = orm as Partial<Record<(typeof methods)[number], unknown>> | null
  if (isKey(given) && methods.every((name) => typeof given[name] === 'function')) return
  const text = `The \`transactions\` of ${caller} must be made by an entry for your ORM, such as kysely(db) of onceonly/kysely.`
  throw new OnceError('bad_option', text, { details: { option: 'transactions' } })
}

const places = {
  postgres: ['PostgreSQL', 'postgresStore(pool) on the same database'],
  sqlite: ['SQLite', 'sqliteStore(path) on the same file'],
} as const

/** @param caller the function that was given both */
export function adopt<Handle>(
  caller: string,
  store: { readonly name: string; readonly foreign?: ForeignTransactions },
  orm: OrmTransactions<Handle>,
): AdoptedTransactions<Handle> {
  checkOrm(caller, orm)
  if (store.foreign?.dialect === orm.dialect) {
    const adopted = store.foreign.on(orm)
    ormOf.set(adopted, orm)
    return adopted
  }
  const [database, use] = places[orm.dialect]
  const text = `The \`transactions\` of ${caller} are those of ${orm.name} on ${database}, and its store is ${store.name}. Use ${use}.`
  throw new OnceError('bad_option', text, { details: { option: 'transactions' } })
}

const ormOf = new WeakMap<object, object>()

/**
 * A definition that wants the handle of an ORM runs only on a ledger that hands out this very handle.
 *
 * @param what the definition, for the message: `the saga order`
 */
export function checkSameOrm(what: string, adopted: object | null, orm: OrmTransactions<unknown> | null): void {
  if (orm === null || (adopted !== null && ormOf.get(adopted) === orm)) return
  const has = adopted === null ? 'its ledger has none' : 'they are not those of its ledger'
  const text = `${what} has \`transactions\`, and ${has}. Give createLedger({ store, transactions }) the same object.`
  throw new OnceError('bad_option', `${text.charAt(0).toUpperCase()}${text.slice(1)}`, {
    details: { option: 'transactions' },
  })
}

/** How many errors are looked through for the database's own: ORMs wrap it once or twice. */
const CAUSES = 5
const CAUSE_NAMES = ['cause', 'driverError', 'originalError', 'nativeError', 'original'] as const

/** The error itself, and what it was made of. */
export function causesOf(error: unknown): readonly object[] {
  const found: object[] = []
  let next: unknown = error
  while (found.length < CAUSES && typeof next === 'object' && next !== null) {
    found.push(next)
    const wrapped = next as Partial<Record<(typeof CAUSE_NAMES)[number], unknown>>
    next = CAUSE_NAMES.map((name) => wrapped[name]).find((cause) => typeof cause === 'object' && cause !== null)
  }
  return found
}

export function lostTransaction(cause?: unknown): OnceError {
  return new OnceError('transaction_lost', 'The transaction ended while its effect ran.', { cause })
}

export function noTransaction(orm: string): OnceError {
  const text = `This handle of ${orm} is no open transaction. Pass the one that your transaction's callback was given.`
  return new OnceError('bad_option', text)
}
