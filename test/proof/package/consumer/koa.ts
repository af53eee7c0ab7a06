import Router from '@koa/router'
import Koa from 'koa'
import { createProtect } from 'onceonly/koa'
import { once } from './ledger.ts'

export const protect = createProtect({
  ledger: once,
  who: (ctx) => ({ tenant: ctx.hostname, caller: ctx.get('x-user') || 'anonymous' }),
})
export const router = new Router()
router.post(
  '/tickets/:show',
  protect({ name: 'koa.ticket', effect: 'transaction' }, async (ctx, { tx }) => {
    await tx.query('insert into tickets (show) values ($1)', [ctx.params['show'] ?? ''])
    ctx.status = 201
    ctx.body = { show: ctx.params['show'] }
  }),
)
export const app = new Koa().use(router.routes())
