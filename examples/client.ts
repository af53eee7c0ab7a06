import assert from 'node:assert/strict'
import { once as happened } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createClient } from 'onceonly/client'
import { openFileKeys } from 'onceonly/client-file'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'

// A server that takes orders, and whose first answer gets lost on the way.
const once = createLedger({ store: memoryStore() })
const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shop' }) })
const orders: string[] = []
const take = protect({ name: 'order.place', effect: 'external' }, (_request, response) => {
  orders.push('tea')
  response.writeHead(201).end('order 1')
})
let lose = true
const server = createServer((request, response) => {
  if (lose) response.end = () => response.destroy()
  lose = false
  void take(request, response)
})
await happened(server.listen(0, '127.0.0.1'), 'listening')
const url = `http://127.0.0.1:${portOf(server)}/orders`

// The intent has one key, in a file, from before the first attempt: a crash between any two lines here is harmless.
const folder = await mkdtemp(join(tmpdir(), 'keys-'))
const client = createClient({ keys: await openFileKeys({ folder }) })
const { response, attempts, replayed } = await client.send(url, {
  method: 'POST',
  intent: 'cart-17/order',
  body: 'tea',
})
assert.deepEqual([response.status, await response.text()], [201, 'order 1'])
assert.deepEqual([attempts, replayed, orders.length], [2, true, 1])

// Asked again, even by another process, it is the same order; until it is dropped.
const again = await client.send(url, { method: 'POST', intent: 'cart-17/order', body: 'tea' })
assert.equal(again.replayed, true)
await client.drop('cart-17/order')

console.log('one order, although its answer was lost')
client.stop()
server.closeAllConnections()
server.close()
await once.stop()
await rm(folder, { recursive: true })

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
