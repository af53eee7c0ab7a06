import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Declaration } from '../openapi/declaration.ts'
import { decorate } from '../workspaces/authenticate.ts'
import { admitCommands, createAdmission } from './admission.ts'

test('a body for an operator is counted like any other, beside those of its address', async (context) => {
  const server = Fastify()
  decorate(server)
  const admission = createAdmission()
  const keys: string[] = []
  const received = Promise.withResolvers<void>()
  admitCommands(server, {
    ...admission,
    receive(key, bytes) {
      keys.push(key)
      if (keys.length === 2) received.resolve()
      return admission.receive(key, bytes)
    },
  })
  for (const [url, access] of [
    ['/actions', 'operator'],
    ['/hooks', 'hook secret'],
  ] as const) {
    const declaration = { access, repeat: { kind: 'natural' } } as unknown as Declaration
    server.post(url, { config: { declaration } }, async () => ({ done: true }))
  }
  await server.listen({ host: '127.0.0.1', port: 0 })
  context.after(() => server.close())
  const { port } = server.server.address() as AddressInfo
  // The operator is known when the body has come: before that it may be any client.
  const sockets = ['/actions', '/hooks'].map((url) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(`POST ${url} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{`)
    return socket
  })
  await received.promise
  assert.deepEqual(keys.toSorted(), ['address 127.0.0.1', 'operators at 127.0.0.1'])
  assert.equal(admission.load.bodyBytes, 120_000)
  await Promise.all(sockets.map((socket) => once(socket.destroy(), 'close')))
})
