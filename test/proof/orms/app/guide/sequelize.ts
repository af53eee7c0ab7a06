import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sequelize } from 'onceonly/sequelize'
import { Pool } from 'pg'
import { DataTypes, Sequelize } from 'sequelize'

const url = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: url })
await pool.query('CREATE TABLE orders (item text PRIMARY KEY)')

const db = new Sequelize(url, { logging: false })
const Order = db.define(
  'Order',
  { item: { type: DataTypes.TEXT, primaryKey: true } },
  { tableName: 'orders', timestamps: false },
)
const once = createLedger({ store: postgresStore(pool), transactions: sequelize(db) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { item: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    await Order.create(order, { transaction: tx })
  })

await Promise.all([place('click-1', { item: 'lamp' }), place('click-1', { item: 'lamp' })])
assert.equal(await Order.count(), 1)
process.exit()
