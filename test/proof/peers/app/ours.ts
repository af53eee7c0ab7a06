import express from 'express'
import { createLedger } from 'onceonly'
import { createProtect, keepRawBody } from 'onceonly/express'
import { postgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'

export function createApp(pool: Pool) {
  const app = express()
  app.use(express.json({ verify: keepRawBody }))
  const ledger = createLedger({ store: postgresStore(pool) })
  const protect = createProtect({
    ledger,
    who: (req) => ({ tenant: 'acme', caller: req.get('x-user') ?? 'anonymous' }),
  })
  app.post(
    '/orders',
    protect({ name: 'order.place', effect: 'transaction' }, async (req, res, { tx }) => {
      const [order] = await tx.query('insert into orders (item) values (?) returning id', [req.body.item])
      res.status(201).json(order)
    }),
  )
  return app
}
