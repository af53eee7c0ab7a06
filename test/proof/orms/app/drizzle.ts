import { sql } from 'drizzle-orm'
import { type NodePgDatabase, drizzle as onNodePostgres } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { drizzle as onPostgresJs } from 'drizzle-orm/postgres-js'
import { createLedger } from 'onceonly'
import { drizzle } from 'onceonly/drizzle'
import { type PostgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import postgres from 'postgres'
import { crashesWithSession, row, sameType } from './row.ts'

const orders = pgTable('orders', { name: text('name').primaryKey() })
const schema = { orders }
const logger = { logQuery: () => undefined }

export const drizzleRows = [
  row('Drizzle on node-postgres', async (url, { max }) => {
    const pool = new Pool({ connectionString: url, max })
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
    const db = onNodePostgres(pool, { schema, logger })
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
    return {
      transactions: drizzle(db),
      insert: async (tx: Tx, name) => {
        await tx.insert(orders).values({ name })
      },
      transaction: (work) => db.transaction(work),
      nested: (tx, work) => tx.transaction(work),
      raw: async (tx, statement) => await tx.execute(sql.raw(statement)),
      close: () => pool.end(),
    }
  }),
  row(
    'Drizzle on postgres.js',
    async (url, connections) => {
      const client = postgres(url, { onnotice: () => undefined, ...connections })
      const db = onPostgresJs(client, { schema, logger })
      type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
      return {
        transactions: drizzle(db),
        insert: async (tx: Tx, name) => {
          await tx.insert(orders).values({ name })
        },
        transaction: (work) => db.transaction(work),
        nested: (tx, work) => tx.transaction(work),
        raw: async (tx, statement) => await tx.execute(sql.raw(statement)),
        // postgres.js would wait forever for a session that was ended.
        close: () => client.end({ timeout: 1 }),
      }
    },
    crashesWithSession,
  ),
]

/** Checked by the compiler only. */
export function types(db: NodePgDatabase<typeof schema>, store: PostgresStore): void {
  const once = createLedger({ store, transactions: drizzle(db) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], Parameters<Parameters<typeof db.transaction>[0]>[0]>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', async ({ tx }) => {
    sameType<typeof tx, Parameters<Parameters<typeof db.transaction>[0]>[0]>(true)
    const found = await tx.query.orders.findFirst()
    sameType<typeof found, { name: string } | undefined>(true)
  })
}
