import assert from 'node:assert/strict'
import { Kysely, PostgresDialect } from 'kysely'
import { createLedger } from 'onceonly'
import { kysely } from 'onceonly/kysely'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'

interface Tables {
  orders: { item: string }
}

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
await pool.query('CREATE TABLE orders (item text)')

const once = createLedger({ store: postgresStore(pool), transactions: kysely(db) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

async function place(key: string, order: { item: string }) {
  return placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, async ({ tx }) => {
    await tx.insertInto('orders').values(order).execute()
    return { placed: order.item }
  })
}

const answers = await Promise.all([place('click-1', { item: 'lamp' }), place('click-1', { item: 'lamp' })])
assert.deepEqual(answers, [{ placed: 'lamp' }, { placed: 'lamp' }])

const order = { item: 'chair' }
const identity = { tenant: 'acme', caller: 'shop', key: 'click-2' }
const outbox = createOutbox({ ledger: once })
await outbox.prepare()

await db.transaction().execute(async (trx) => {
  await placeOrder.within(trx, identity, order, async ({ tx }) => {
    await tx.insertInto('orders').values(order).execute()
  })
  await outbox.add(trx, { topic: 'order.placed', body: order })
})

assert.equal((await db.selectFrom('orders').selectAll().execute()).length, 2)
process.exit()
