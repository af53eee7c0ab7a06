import express from 'express'
import { getSharedIdempotencyService, idempotency } from 'express-idempotency'
import type { Pool } from 'pg'

export function createApp(pool: Pool) {
  const app = express()
  app.use(express.json())
  app.use(idempotency())
  app.post('/orders', async (req, res) => {
    if (getSharedIdempotencyService().isHit(req)) return
    const { rows } = await pool.query('insert into orders (item) values ($1) returning id', [req.body.item])
    res.status(201).json(rows[0])
  })
  return app
}
