import express from 'express'
import { createProtect, keepRawBody, operationStatus } from 'onceonly/express'
import { once } from './ledger.ts'

export const protect = createProtect({
  ledger: once,
  who: (request) => ({ tenant: request.hostname, caller: request.get('x-user') ?? 'anonymous' }),
})

export const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post(
  '/orders',
  protect({ name: 'express.order', effect: 'transaction' }, async (request, response, { tx }) => {
    const [order] = await tx.query<{ id: number }>('insert into orders (item) values ($1) returning id', [
      request.body.item,
    ])
    response.status(201).json({ id: order?.id })
  }),
)
// TypeScript does not carry the parameters of the path through a call: the path is named once more as a type.
app.post<'/orders/:id/cancel'>(
  '/orders/:id/cancel',
  protect({ name: 'express.cancel', effect: 'external' }, (request, response, { effectKey }) => {
    const id: string = request.params.id
    response.json({ id, effectKey })
  }),
)
app.get('/operations/:id', operationStatus({ ledger: once, who: () => ({ tenant: 'acme', caller: 'ann' }) }))
