import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { createLedger } from 'onceonly'
import type { GatewayConfig } from 'onceonly/gateway'
import { createGateway } from 'onceonly/gateway'
import { memoryStore } from 'onceonly/memory'

// A service that must not be changed: it charges on every request.
let charges = 0
const service = createServer((request, response) => {
  request.resume()
  charges++
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id: `ch_${charges}` }))
})
await once(service.listen(0, '127.0.0.1'), 'listening')
const servicePort = portOf(service)

const gateway: GatewayConfig = {
  upstream: `http://127.0.0.1:${servicePort}`,
  routes: [
    // A key is required, and belongs to the caller; a retry is answered to the credential that asked first.
    { method: 'POST', path: '/v1/charges', key: 'required' },
    // Clients that send no key: the same content is one request for five minutes.
    {
      method: 'POST',
      path: '/v1/chat/*',
      key: 'optional',
      content: { withinMs: 5 * 60_000 },
    },
  ],
}

// As `onceonly gateway` does it, inside of a program.
const store = memoryStore()
const ledger = createLedger({ store })
const server = createGateway({ config: gateway, ledger })
const { port } = await server.listen(0)

const ask = (path: string, key?: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk_1', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: '{"amount":4200}',
  })

const first = await ask('/v1/charges', 'order-1001')
const retry = await ask('/v1/charges', 'order-1001')
assert.equal(await retry.text(), await first.text())
assert.equal(retry.headers.get('idempotent-replayed'), 'true')
assert.equal((await ask('/v1/charges')).status, 400)
await ask('/v1/chat/completions')
await ask('/v1/chat/completions')
assert.equal(charges, 2)

console.log('five requests, two of them reached the service')
await server.stop()
await ledger.stop()
service.close()

function portOf(listening: Server): number {
  const address = listening.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}
