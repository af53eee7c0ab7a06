import assert from 'node:assert/strict'
import Knex from 'knex'
import { createLedger } from 'onceonly'
import { knex } from 'onceonly/knex'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

const connection = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: connection })
await pool.query('CREATE TABLE orders (item text)')

const db = Knex({ client: 'pg', connection })
const once = createLedger({ store: postgresStore(pool), transactions: knex(db) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { item: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    await tx('orders').insert(order)
  })

await Promise.all([place('click-1', { item: 'lamp' }), place('click-1', { item: 'lamp' })])
assert.equal((await db('orders')).length, 1)
process.exit()
