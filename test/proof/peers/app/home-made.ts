import { createHash } from 'node:crypto'
import express from 'express'
import type { Pool } from 'pg'

// create table request_keys (caller text, key text, digest text, status int, body jsonb, primary key (caller, key))
export function createApp(pool: Pool) {
  const app = express()
  app.use(express.json())
  app.post('/orders', async (req, res) => {
    const caller = req.get('x-user') ?? 'anonymous'
    const key = req.get('idempotency-key')
    if (key === undefined) return void res.status(400).json({ error: 'Idempotency-Key is missing' })
    const digest = createHash('sha256').update(JSON.stringify(req.body)).digest('hex')
    const client = await pool.connect()
    try {
      await client.query('begin')
      // A twin waits here until the first one has committed.
      const claim = await client.query(
        'insert into request_keys (caller, key, digest) values ($1, $2, $3) on conflict do nothing',
        [caller, key, digest],
      )
      if (claim.rowCount === 0) {
        const { rows } = await client.query('select * from request_keys where caller = $1 and key = $2', [caller, key])
        await client.query('commit')
        if (rows[0].digest !== digest) return void res.status(409).json({ error: 'The key was used for another body' })
        return void res.status(rows[0].status).json(rows[0].body)
      }
      const { rows } = await client.query('insert into orders (item) values ($1) returning id', [req.body.item])
      await client.query('update request_keys set status = 201, body = $3 where caller = $1 and key = $2', [
        caller,
        key,
        JSON.stringify(rows[0]),
      ])
      await client.query('commit')
      res.status(201).json(rows[0])
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  })
  return app
}
