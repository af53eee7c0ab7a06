import assert from 'node:assert/strict'
import { once as eventOf } from 'node:events'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '@prisma/client'
import express from 'express'
import { createLedger } from 'onceonly'
import { createProtect, keepRawBody } from 'onceonly/express'
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

const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: 'acme', caller: request.get('x-user') ?? 'anonymous' }),
})

const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post(
  '/orders',
  protect({ name: 'order.place-by-route', effect: 'transaction' }, async (request, response, { tx }) => {
    const order = await tx.order.create({ data: { name: request.body.name } })
    response.status(201).json(order)
  }),
)

const server = app.listen(0, '127.0.0.1')
await eventOf(server, 'listening')
const address = server.address()
assert.ok(typeof address === 'object' && address !== null)
const ask = () =>
  fetch(`http://127.0.0.1:${address.port}/orders`, {
    method: 'POST',
    headers: { 'idempotency-key': 'click-2', 'content-type': 'application/json' },
    body: '{"name":"pen"}',
  })
assert.equal((await ask()).status, 201)
assert.equal((await ask()).headers.get('idempotent-replayed'), 'true')
assert.equal(await client.order.count(), 2)
process.exit()
