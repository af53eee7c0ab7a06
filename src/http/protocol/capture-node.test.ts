import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createLedger } from '../../ledger/ledger.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import { NodeIncoming } from './capture-node.ts'
import { createRoute } from './protect.ts'

test('a client that left before the claim claims nothing', async (context) => {
  const ledger = createLedger({ store: memoryStore() })
  context.after(() => ledger.stop())
  const who = () => ({ tenant: 'acme', caller: 'ann' })
  const route = createRoute({ ledger, who }, { name: 'order.place', effect: 'external' })
  const server = createServer().listen(0, '127.0.0.1')
  context.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const headers = { 'idempotency-key': 'left-1' }
  const sent = ask({ port, host: '127.0.0.1', method: 'POST', path: '/orders', headers, agent: false })
  sent.on('error', () => {}).end()
  const [request, response] = await once(server, 'request')
  sent.destroy()
  await once(response, 'close')
  const incoming = new NodeIncoming(request, response, '/orders', () => ({ bytes: new Uint8Array() }))
  const begun = await route.begin(incoming, request, incoming)
  assert.equal(begun.kind, 'answer')
  assert.equal(await ledger.get({ ...who(), operation: 'order.place', key: 'left-1' }), null)
})
