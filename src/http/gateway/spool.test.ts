import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { createByteBudget } from '../front/bytes.ts'
import { gatewayLimits } from './limits.ts'
import { createSpool, type Spool, SpoolFull } from './spool.ts'

const large = Buffer.alloc(gatewayLimits.memoryBodyBytes + 1)

test('the files of all bodies share one room, and give it back', async () => {
  const disk = createByteBudget({ totalBytes: large.length, share: 1 })
  const memory = createByteBudget({ totalBytes: 4 * large.length, share: 1 })
  const kept: Spool[] = []
  await using server = createServer((message, response) => {
    const turn = { take: async () => true, give() {} }
    const room = { memory: memory.hold('one'), disk: disk.hold('one'), turn }
    const spool = createSpool(message, { maxBytes: 2 * large.length, bodyMs: 120_000, room })
    kept.push(spool)
    spool.body().then(
      () => response.end('taken'),
      (error: unknown) => response.end(error instanceof SpoolFull ? 'full' : String(error)),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const post = async () => {
    const request = send({ port, host: '127.0.0.1', method: 'POST', agent: false })
    request.end(large)
    const [answer] = await once(request, 'response')
    return await text(answer as IncomingMessage)
  }

  assert.equal(await post(), 'taken')
  assert.equal(disk.heldBytes, large.length)
  assert.equal(await post(), 'full', 'nothing is kept of what has no room')
  for (const spool of kept) spool.discard()
  await until('the room is given back', () => disk.heldBytes === 0)
  assert.equal(await post(), 'taken')
  for (const spool of kept) spool.discard()
  await until('the room is given back', () => disk.heldBytes === 0)
  assert.equal(disk.heldBytes, 0, 'given back once, however often it is discarded')
})
