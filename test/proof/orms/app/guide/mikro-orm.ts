import assert from 'node:assert/strict'
import { defineEntity, MikroORM } from '@mikro-orm/postgresql'
import { createLedger } from 'onceonly'
import { mikroOrm } from 'onceonly/mikro-orm'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

const clientUrl = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString: clientUrl })
await pool.query('CREATE TABLE orders (name text PRIMARY KEY)')
const Order = defineEntity({ name: 'Order', tableName: 'orders', properties: (p) => ({ name: p.text().primary() }) })

const orm = await MikroORM.init({ clientUrl, entities: [Order], schemaGenerator: { ignoreSchema: ['onceonly'] } })
const store = postgresStore(pool, { schema: 'onceonly' })
const once = createLedger({ store, transactions: mikroOrm(orm) })
const placeOrder = once.operation<{ name: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { name: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    tx.persist(tx.create(Order, order))
  })

await Promise.all([place('click-1', { name: 'lamp' }), place('click-1', { name: 'lamp' })])
assert.equal(await orm.em.fork().count(Order), 1)
// Without `ignoreSchema` it would remove the tables of the store.
assert.doesNotMatch(await orm.schema.getUpdateSchemaSQL(), /onceonly/)
process.exit()
