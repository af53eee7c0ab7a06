import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import type { Pool } from 'pg'

// create table request_keys (caller text, key text, digest text, status int, body jsonb, primary key (caller, key))
export function createApp(pool: Pool) {
  const app = Fastify()
  app.post<{ Body: { item: string } }>('/orders', async (request, reply) => {
    const caller = String(request.headers['x-user'] ?? 'anonymous')
    const key = request.headers['idempotency-key']
    if (typeof key !== 'string') return reply.code(400).send({ error: 'Idempotency-Key is missing' })
    const digest = createHash('sha256').update(JSON.stringify(request.body)).digest('hex')
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
        if (rows[0].digest !== digest) return reply.code(409).send({ error: 'The key was used for another body' })
        return reply.code(rows[0].status).send(rows[0].body)
      }
      const { rows } = await client.query('insert into orders (item) values ($1) returning id', [request.body.item])
      await client.query('update request_keys set status = 201, body = $3 where caller = $1 and key = $2', [
        caller,
        key,
        JSON.stringify(rows[0]),
      ])
      await client.query('commit')
      return reply.code(201).send(rows[0])
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  })
  return app
}
