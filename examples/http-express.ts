import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createLedger } from 'onceonly'
import { idempotent, keepRawBody, noteErrors } from 'onceonly/express'
import { memoryStore } from 'onceonly/memory'

const once = createLedger({ store: memoryStore() })
const protect = idempotent({
  ledger: once,
  // From your authentication: a key belongs to its caller.
  who: (request: express.Request) => ({ tenant: 'acme', caller: request.get('x-user') ?? 'anonymous' }),
})

const orders: string[] = []
const app = express()
app.use(express.json({ verify: keepRawBody }))
app.post(
  '/orders',
  protect({ name: 'order.place', effect: 'external' }),
  (request: express.Request, response: express.Response) => {
    orders.push((request.body as { item: string }).item)
    response.status(201).location(`/orders/${orders.length}`).json({ order: orders.length })
  },
  noteErrors,
)
const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => void server.once('listening', resolve))

const { port } = server.address() as AddressInfo
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
