import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { typeorm } from 'onceonly/typeorm'
import { Pool } from 'pg'
import { DataSource, EntitySchema } from 'typeorm'

const url = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: url })
await pool.query('CREATE TABLE orders (name text PRIMARY KEY)')
const Order = new EntitySchema<{ name: string }>({
  name: 'Order',
  tableName: 'orders',
  columns: { name: { type: 'text', primary: true } },
})

const dataSource = await new DataSource({ type: 'postgres', url, entities: [Order] }).initialize()
const once = createLedger({ store: postgresStore(pool), transactions: typeorm(dataSource) })
const placeOrder = once.operation<{ name: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { name: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, ({ tx }) => tx.save(Order, order))

await Promise.all([place('click-1', { name: 'lamp' }), place('click-1', { name: 'lamp' })])
assert.equal(await dataSource.manager.count(Order), 1)
process.exit()
