import assert from 'node:assert/strict'
import { once as event } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { openStore, who } from '../../support/place.ts'

/** One message of PostgreSQL's protocol: its type, its length, its body. */
function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, Buffer.from(body, 'latin1')])
}

/** Welcome, ready for your queries, and good-bye: what a server that shuts down may send at once. */
const WELCOME_AND_GOODBYE = Buffer.concat([
  message('R', '\0\0\0\0'),
  message('Z', 'I'),
  message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
])

test('a session that the server ends in its first packet is a typed error, and ends no process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(WELCOME_AND_GOODBYE))
  })
  await event(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const { store, close } = openStore({ kind: 'postgres', url: `postgres://user@127.0.0.1:${port}/nothing` })
  const once = createLedger({ store, background: false })
  // A client without an error listener at that moment would be an uncaught exception, which fails the test.
  const asked = once.operation({ name: 'op', effect: 'external' }).run(who('k'), 1, () => assert.fail('it ran'))
  await assert.rejects(asked, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no')
  await once.stop()
  await close()
  server.close()
  await event(server, 'close')
})
