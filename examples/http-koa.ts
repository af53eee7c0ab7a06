import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import { createLedger } from 'onceonly'
import { createProtect } from 'onceonly/koa'
import { memoryStore } from 'onceonly/memory'

const once = createLedger({ store: memoryStore() })
const protect = createProtect({
  ledger: once,
  // From your authentication: a key belongs to its caller.
  who: (ctx) => ({ tenant: 'acme', caller: ctx.get('x-user') || 'anonymous' }),
})

const tickets: string[] = []
const router = new Router()
router.post(
  '/shows/:show/tickets',
  protect({ name: 'ticket.buy', effect: 'external' }, (ctx, { effectKey }) => {
    tickets.push(effectKey)
    ctx.status = 201
    ctx.body = { show: ctx.params['show'], ticket: tickets.length }
  }),
)
const app = new Koa().use(router.routes())
const listener = app.callback()
const server = createServer((request, response) => void listener(request, response))
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))

const port = portOf(server)
const ask = (seat: number) =>
  fetch(`http://127.0.0.1:${port}/shows/hamlet/tickets`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'click-1', 'x-user': 'ann' },
    body: JSON.stringify({ seat }),
  })

const first = await ask(7)
const retry = await ask(7)
assert.deepEqual([retry.status, await retry.json()], [201, await first.json()])
assert.equal(retry.headers.get('idempotent-replayed'), 'true')
assert.equal((await ask(8)).status, 409)
assert.equal(tickets.length, 1)

console.log('three requests under one key, one ticket')
server.close()
await once.stop()

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
