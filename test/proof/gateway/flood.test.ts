import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { allQuiet, askFrom, flood, QUIET } from '../../support/gateway/flood.ts'
import { openGateway, openServer } from '../../support/gateway/world.ts'

test('an address that fills the places of an upstream waits or is refused; another one is served', async (context) => {
  const held: (() => void)[] = []
  const url = await openServer(context, ({ url: path }, response) => {
    if (path === '/quick') response.end('quick')
    else held.push(() => response.end('slow'))
  })
  const world = await openGateway(context, url)
  const sockets = flood(context, world.port, 1_800, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
  const refused = () => sockets.filter(({ told = '' }) => told.startsWith('HTTP/1.1 503'))
  await until(
    'each has a place, waits, or was refused',
    () => held.length + world.load.waiting + refused().length === 1_800,
  )
  assert.deepEqual([held.length, world.load.waiting], [768, 768], 'three quarters of the places and of the queue')
  assert.match(refused()[0]?.told ?? '', /retry-after: [1-5]\r.*too-busy.*"retryable":true/is)
  assert.equal(await askFrom(QUIET, world.port, 'GET', '/quick'), 200)
  assert.equal(held.length, 768)
  for (const answer of held.splice(0)) answer()
  await until('the waiting requests have a place', () => held.length === 768)
  for (const socket of sockets) socket.destroy()
  await allQuiet(world)
})
