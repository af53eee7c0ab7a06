import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { callProvider } from './http.ts'

test('an answer without an end is read as far as it is of use', async (t) => {
  const server = createServer((_request, response) => {
    response.writeHead(200)
    const endless = Readable.from(
      (function* () {
        for (;;) yield 'é'.repeat(10_001)
      })(),
    )
    endless.on('error', () => {})
    endless.pipe(response).on('close', () => endless.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const result = await callProvider(`http://127.0.0.1:${port}/`, { body: '{}' }, ({ id }) => id, 'own')
  assert.deepEqual(result, { kind: 'sent', providerMessageId: 'own' })
})
