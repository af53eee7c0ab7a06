import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

const pool = new Pool({ connectionString: process.env['DATABASE_URL'], max: 1 })
const once = createLedger({ store: postgresStore(pool), background: false })

await pool.query('create table if not exists orders (id text not null)')
const placeOrder = once.operation<{ id: string }>({ name: 'order.place', effect: 'transaction' })
const place = () =>
  placeOrder.run({ tenant: 'acme', caller: 'web', key: 'click-1' }, { id: 'A1' }, async ({ tx }) => {
    await tx.query('insert into orders (id) values (?)', ['A1'])
    return 'placed'
  })

assert.deepEqual(await Promise.all([place(), place()]), ['placed', 'placed'])
const { rows } = await pool.query('select id from orders')
assert.deepEqual(rows, [{ id: 'A1' }])
console.log('two clicks at once, one connection, one order')
await once.stop()
await pool.end()
