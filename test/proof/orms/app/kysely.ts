import { CamelCasePlugin, Kysely, type KyselyPlugin, PostgresDialect, sql, type Transaction } from 'kysely'
import { createLedger, type SqlTx } from 'onceonly'
import { kysely } from 'onceonly/kysely'
import { type PostgresStore } from 'onceonly/postgres'
import { defineRun } from 'onceonly/run'
import { defineSaga, event } from 'onceonly/saga'
import { Pool } from 'pg'
import { row, sameType } from './row.ts'

const STEP = { semantics: 'transactional' } as const

interface Tables {
  orders: { name: string }
}

function rowOf(name: string, plugins: KyselyPlugin[]) {
  return row(name, async (url, { max }) => {
    const pool = new Pool({ connectionString: url, max })
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins })
    return {
      transactions: kysely(db),
      insert: async (tx: Transaction<Tables>, value) => {
        await tx.insertInto('orders').values({ name: value }).execute()
      },
      transaction: (work) => db.transaction().execute(work),
      nested: null,
      raw: (tx, text) => sql.raw(text).execute(tx),
      close: () => db.destroy(),
    }
  })
}

export const kyselyRows = [rowOf('Kysely', []), rowOf('Kysely with CamelCasePlugin', [new CamelCasePlugin()])]

/** Checked by the compiler only. */
export function types(db: Kysely<Tables>, store: PostgresStore): void {
  const once = createLedger({ store, transactions: kysely(db) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], Transaction<Tables>>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) =>
    sameType<typeof tx, Transaction<Tables>>(true),
  )
  const transactions = kysely(db)
  defineRun(
    'order',
    (run) => run.step('place', STEP, async ({ tx }) => sameType<typeof tx, Transaction<Tables>>(true)),
    {
      transactions,
    },
  )
  defineRun('plain', (run) => run.step('place', STEP, async ({ tx }) => sameType<typeof tx, SqlTx>(true)))
  defineSaga({
    name: 'parcels',
    transactions,
    events: { Packed: event<string>({ correlate: (id) => id }) },
    states: [],
    terminal: ['Done'],
    data: () => ({}),
    table: {
      initial: {
        Packed: { to: ['Done'], handle: (_, __, { tx }) => void sameType<typeof tx, Transaction<Tables>>(true) },
      },
    },
    onEnter: { Done: (_, { tx }) => void sameType<typeof tx, Transaction<Tables>>(true) },
  })
  // @ts-expect-error: the database itself is no transaction.
  void place.within(db, { tenant: 'a', caller: 'b', key: 'c' }, 'lamp', () => null)
}
