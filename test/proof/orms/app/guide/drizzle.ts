import assert from 'node:assert/strict'
import { drizzle as connect } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { createLedger } from 'onceonly'
import { drizzle } from 'onceonly/drizzle'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

const orders = pgTable('orders', { item: text('item') })
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
await pool.query('CREATE TABLE orders (item text)')

const db = connect(pool)
const once = createLedger({ store: postgresStore(pool), transactions: drizzle(db) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { item: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    await tx.insert(orders).values(order)
  })

await Promise.all([place('click-1', { item: 'lamp' }), place('click-1', { item: 'lamp' })])
assert.equal((await db.select().from(orders)).length, 1)
process.exit()
