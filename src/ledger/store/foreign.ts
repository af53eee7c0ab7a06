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

/** @param caller the function that was given both */
export function adopt<Handle>(
  caller: string,
  store: { readonly name: string; readonly foreign?: ForeignTransactions },
  orm: OrmTransactions<Handle>,
): AdoptedTransactions<Handle> {
  checkOrm(caller, orm)
  if (store.foreign?.dialect === orm.dialect) return store.foreign.on(orm)
  const text = `The \`transactions\` of ${caller} are those of ${orm.name} on PostgreSQL, and its store is ${store.name}. Use postgresStore(pool) on the same database.`
  throw new OnceError('bad_option', text, { details: { option: 'transactions' } })
}
