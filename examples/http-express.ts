import assert from 'node:assert/strict'
import type { Server } from 'node:net'
import express, { type Request } from 'express'
import { createLedger } from 'onceonly'
import { createProtect, keepRawBody } from 'onceonly/express'
import { memoryStore } from 'onceonly/memory'

interface Order {
  readonly item: string
}

const once = createLedger({ store: memoryStore() })
const protect = createProtect({
  ledger: once,
  // From your authentication: a key belongs to its caller.
  who: (request) => ({ tenant: 'acme', caller: request.get('x-user') ?? 'anonymous' }),
})

const orders: string[] = []
const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post(
  '/orders',
  protect({ name: 'order.place', effect: 'external' }, (request: Request<object, unknown, Order>, response) => {
    orders.push(request.body.item)
    response.status(201).location(`/orders/${orders.length}`).json({ order: orders.length })
  }),
)
const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => void server.once('listening', resolve))

const port = portOf(server)
const ask = (user: string) =>
  fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'click-1', 'x-user': user },
    body: '{"item":"a book"}',
  })

// A double click: the second request waits for the first, and is given the same answer.
const [first, second] = await Promise.all([ask('ann'), ask('ann')])
assert.deepEqual([first.headers.get('location'), second.headers.get('location')], ['/orders/1', '/orders/1'])
assert.deepEqual(await second.json(), await first.json())
assert.equal((await ask('bob')).headers.get('location'), '/orders/2')
assert.equal(orders.length, 2)

console.log('two clicks of Ann and one of Bob, two orders')
server.close()
await once.stop()

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
