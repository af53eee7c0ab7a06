import { PrismaPg } from '@prisma/adapter-pg'
import express from 'express'
import { createLedger } from 'onceonly'
import { createProtect, keepRawBody } from 'onceonly/express'
import { postgresStore } from 'onceonly/postgres'
import { prisma } from 'onceonly/prisma'
import { Pool } from 'pg'
import { PrismaClient } from '../generated/prisma/client.ts'

const connectionString = process.env['DATABASE_URL']
const client = new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
// In the same database, but in a schema of its own: `prisma db push` and `migrate` remove tables that they do not know.
const store = postgresStore(new Pool({ connectionString }), { schema: 'onceonly' })
const once = createLedger({ store, transactions: prisma(client) })

// Take tenant and caller from your authentication; here a header has to do.
const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: 'acme', caller: request.get('x-user') ?? 'anonymous' }),
})

const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post(
  '/orders',
  // The order and the record of its key commit together, or not at all.
  protect({ name: 'order.place', effect: 'transaction' }, async (request, response, { tx }) => {
    const order = await tx.order.create({ data: { item: request.body.item } })
    response.status(201).json(order)
  }),
)
const port = Number(process.env['PORT'] ?? 3000)
app.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`))
