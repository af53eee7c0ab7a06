import { Idempotency, IdempotencyError } from '@node-idempotency/core'
import { MemoryStorageAdapter } from '@node-idempotency/storage-adapter-memory'
import express from 'express'
import type { Pool } from 'pg'

export function createApp(pool: Pool) {
  const app = express()
  app.use(express.json())
  const idempotency = new Idempotency(new MemoryStorageAdapter())
  app.post('/orders', async (req, res) => {
    const request = { headers: req.headers, path: req.path, method: req.method, body: req.body }
    try {
      const stored = await idempotency.onRequest(request)
      if (stored !== undefined) return void res.status(201).json(stored.body)
    } catch (error) {
      if (!(error instanceof IdempotencyError)) throw error
      return void res.status(409).json({ error: error.code })
    }
    const { rows } = await pool.query('insert into orders (item) values ($1) returning id', [req.body.item])
    await idempotency.onResponse(request, { body: rows[0] })
    res.status(201).json(rows[0])
  })
  return app
}
