import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { postgresJs } from 'onceonly/postgres-js'
import { Pool } from 'pg'
import postgres from 'postgres'

const url = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: url })
await pool.query('CREATE TABLE orders (item text)')

const sql = postgres(url)
const once = createLedger({ store: postgresStore(pool), transactions: postgresJs(sql) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { item: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    await tx`insert into orders ${tx(order)}`
  })

await Promise.all([place('click-1', { item: 'lamp' }), place('click-1', { item: 'lamp' })])
assert.equal((await sql`select * from orders`).length, 1)
process.exit()
