import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'

const once = createLedger({ store: memoryStore() })
// Derive tenant and caller from your authentication; here all clients are one caller.
const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shared' }) })

let payments = 0
const pay = protect({ name: 'payment.create', effect: 'external' }, (_request, response) => {
  payments++
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id: `pay_${payments}` }))
})
const server = createServer((request, response) => void pay(request, response))
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))

const port = portOf(server)
const ask = (cents: number) =>
  fetch(`http://127.0.0.1:${port}/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'order-1001' },
    body: JSON.stringify({ cents }),
  })

const first = await ask(4200)
const retry = await ask(4200)
assert.deepEqual([retry.status, await retry.text()], [first.status, await first.text()])
assert.equal(retry.headers.get('idempotent-replayed'), 'true')
// The same key for another payment is a mistake of the client, and not a second payment either.
assert.equal((await ask(9900)).status, 409)
assert.equal(payments, 1)

console.log('three requests under one key, one payment')
server.close()
await once.stop()

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
