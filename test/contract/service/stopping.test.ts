import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'

test('a send in progress when the server stops is answered, and its connection ends', async (t) => {
  const calls: ServerResponse[] = []
  const provider = createServer((_request, response) => void calls.push(response)).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  t.after(() => {
    provider.closeAllConnections()
    provider.close()
  })
  const { port } = provider.address() as AddressInfo
  await using cluster = await openCluster('sqlite', {
    env: { ONCEONLY_MESSAGE_WEBHOOK_URL: `http://127.0.0.1:${port}/`, ONCEONLY_SEND_TIMEOUT_MS: '60000' },
  })
  const one = cluster.servers[0] as TestServer
  const sending = one.send({ channel: 'webhook', recipientEmail: 'ann@example.com', message: 'Wait for it' })
  await until('the call of the provider', () => calls.length === 1)
  const stopping = one.stop()
  const isClosed = async () => {
    const headers = { connection: 'close' }
    return fetch(`${one.url}/healthz`, { headers }).then(
      () => false,
      () => true,
    )
  }
  await until('the server takes no connection any more', isClosed)
  calls[0]?.writeHead(201).end('{"id":"hook-1"}')
  const { status, body, headers } = await sending
  assert.deepEqual([status, body.status], [201, 'sent'])
  assert.equal(headers.get('connection'), 'close', 'the server does not wait for the client to close')
  await stopping
})
