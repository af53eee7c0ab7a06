import Fastify from 'fastify'
import { MINUTE } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { once } from './ledger.ts'

export const app = Fastify()
await app.register(onceonly)
export const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: request.hostname, caller: request.headers.from ?? 'anonymous' }),
})
app.post<{ Params: { id: string }; Body: { item: string } }>(
  '/orders/:id',
  protect({ name: 'fastify.order', effect: 'transaction' }, async (request, reply, { tx }) => {
    const id: string = request.params.id
    await tx.query('insert into orders (id, item) values ($1, $2)', [id, request.body.item])
    return reply.code(201).send({ id })
  }),
)
// A request without a key is the same as another one by what it says.
app.post<{ Body: { to: string; text: string } }>(
  '/messages',
  protect(
    {
      name: 'fastify.message',
      effect: 'external',
      key: 'optional',
      content: { of: (body) => [body.to, body.text], withinMs: 15 * MINUTE },
    },
    async (request, reply) => reply.code(201).send({ to: request.body.to }),
  ),
)
