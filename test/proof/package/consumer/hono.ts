import { type Context, Hono } from 'hono'
import { validator } from 'hono/validator'
import { createProtect } from 'onceonly/hono'
import { once } from './ledger.ts'

type Session = { Variables: { user: { id: string; orgId: string } } }

export const protect = createProtect({
  ledger: once,
  who: (c: Context<Session>) => ({ tenant: c.get('user').orgId, caller: c.get('user').id }),
})
const booking = validator('json', ({ guest }: { guest: string }) => ({ guest }))

export const app = new Hono<Session>()
  .post(
    '/seats',
    protect({ name: 'hono.seat', effect: 'transaction' }, booking, async (c, { tx }) => {
      const guest: string = c.req.valid('json').guest
      await tx.query('insert into seats (guest) values ($1)', [guest])
      return c.json({ guest }, 201)
    }),
  )
  .post(
    '/seats/:id/cancel',
    // TypeScript does not carry the parameters of the path through a call: the context names it.
    protect({ name: 'hono.cancel', effect: 'external' }, (c: Context<Session, '/seats/:id/cancel'>) => {
      const id: string = c.req.param('id')
      return c.json({ id })
    }),
  )
