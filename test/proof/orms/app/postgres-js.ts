import { createLedger } from 'onceonly'
import { type PostgresStore } from 'onceonly/postgres'
import { postgresJs } from 'onceonly/postgres-js'
import postgres, { type TransactionSql } from 'postgres'
import { crashesWithSession, row, sameType } from './row.ts'

function rowOf(name: string, options: postgres.Options<{}>) {
  return row(
    name,
    async (url, connections) => {
      const sql = postgres(url, { onnotice: () => undefined, ...options, ...connections })
      return {
        transactions: postgresJs(sql),
        insert: async (tx: TransactionSql, value) => {
          await tx`insert into orders ${tx({ name: value })}`
        },
        transaction: async <T>(work: (tx: TransactionSql) => Promise<T>) => (await sql.begin(work)) as T,
        nested: async (tx, work) => {
          await tx.savepoint(work)
        },
        raw: async (tx, text) => await tx.unsafe(text),
        // postgres.js would wait forever for a session that was ended.
        close: () => sql.end({ timeout: 1 }),
      }
    },
    crashesWithSession,
  )
}

export const postgresJsRows = [
  rowOf('postgres.js', {}),
  rowOf('postgres.js with camel-cased columns', { transform: postgres.camel }),
]

/** Checked by the compiler only. */
export function types(sql: postgres.Sql, store: PostgresStore): void {
  const once = createLedger({ store, transactions: postgresJs(sql) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], TransactionSql<{}>>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) =>
    sameType<typeof tx, TransactionSql<{}>>(true),
  )
}
