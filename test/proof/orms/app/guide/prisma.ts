import assert from 'node:assert/strict'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '@prisma/client'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { prisma } from 'onceonly/prisma'
import { Pool } from 'pg'

const connectionString = process.env['DATABASE_URL'] ?? ''
const pool = new Pool({ connectionString })
await pool.query('CREATE TABLE orders (name text PRIMARY KEY)')

const client = new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
const once = createLedger({ store: postgresStore(pool), transactions: prisma(client) })
const placeOrder = once.operation<{ name: string }>({ name: 'order.place', effect: 'transaction' })

const place = (key: string, order: { name: string }) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key }, order, ({ tx }) => tx.order.create({ data: order }))

await Promise.all([place('click-1', { name: 'lamp' }), place('click-1', { name: 'lamp' })])
assert.equal(await client.order.count(), 1)
process.exit()
