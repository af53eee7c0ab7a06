import { checkLedger } from './arguments.ts'
import { OnceError } from './core/errors.ts'
import { kindOf } from './core/option-names.ts'
import type { SqlStore, Store } from './store/port.ts'
import type { SqlTx } from './store/sql.ts'

/** The store of a ledger, for wings whose tables commit with its records. */
export function sqlStoreOf<Tx extends SqlTx>(caller: string, ledger: { readonly store: Store }): SqlStore<Tx> {
  checkLedger(caller, ledger)
  const { store } = ledger
  if (store.sql !== undefined && store.transactions !== undefined) return store as SqlStore<Tx>
  const text = `The \`ledger\` of ${caller} is on the ${store.name} store. Use SQLite or PostgreSQL, where the record and what the effect writes commit together.`
  throw new OnceError('bad_option', text, { details: { option: 'ledger' } })
}

/** Refuses what keeps no tables of its own, for functions that take a store. */
export function checkSqlStore(caller: string, store: unknown): void {
  const given = (store ?? {}) as Partial<Store> & { readonly operation?: unknown }
  if (given.sql !== undefined) return
  const what =
    given.operation !== undefined ? 'a ledger' : given.claims === undefined ? kindOf(store) : `the ${given.name} store`
  const text = `The \`store\` of ${caller} is ${what}. Give a store that speaks SQL: sqliteStore(path) or postgresStore(pool).`
  throw new OnceError('bad_option', text, { details: { option: 'store' } })
}
