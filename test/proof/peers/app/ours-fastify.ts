import Fastify from 'fastify'
import { createLedger } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { postgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'

export async function createApp(pool: Pool) {
  const app = Fastify()
  await app.register(onceonly)
  const ledger = createLedger({ store: postgresStore(pool) })
  const protect = createProtect({
    ledger,
    who: (request) => ({ tenant: 'acme', caller: String(request.headers['x-user'] ?? 'anonymous') }),
  })
  app.post<{ Body: { item: string } }>(
    '/orders',
    protect({ name: 'order.place', effect: 'transaction' }, async (request, reply, { tx }) => {
      const [order] = await tx.query('insert into orders (item) values (?) returning id', [request.body.item])
      return reply.code(201).send(order)
    }),
  )
  return app
}
