import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { allQuiet, askFrom, flood, QUIET } from '../../support/gateway/flood.ts'
import { openGateway, openServer } from '../../support/gateway/world.ts'

/** Three quarters of the places of an upstream, and of its queue. */
const SHARE = 768
const SLOW = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'

test('an address that fills the places of an upstream waits or is refused; another one is served', async (context) => {
  const held: (() => void)[] = []
  const url = await openServer(context, ({ url: path }, response) => {
    if (path === '/quick') response.end('quick')
    else held.push(() => response.end('slow'))
  })
  const world = await openGateway(context, url)

  // 1. What has no place waits for one.
  const first = flood(context, world.port, SHARE, SLOW)
  await until('all of them have a place', () => held.length === SHARE)
  const waiting = flood(context, world.port, 1, SLOW)
  await until('one more waits', () => world.load.waiting === 1)
  held.shift()?.()
  await until('it has the place that was left', () => held.length === SHARE)

  // 2. The queue is bounded, too; how long a request waits in it depends on the machine.
  const others = flood(context, world.port, 1_000, SLOW)
  const refused = () => others.filter(({ told = '' }) => told.startsWith('HTTP/1.1 503'))
  let longest = 0
  await until('each waits or was refused', () => {
    longest = Math.max(longest, world.load.waiting)
    return world.load.waiting + refused().length === others.length
  })
  assert.ok(longest <= SHARE, `${longest} waited at once`)
  assert.match(refused()[0]?.told ?? '', /retry-after: [1-5]\r.*too-busy.*"retryable":true/is)
  assert.equal(await askFrom(QUIET, world.port, 'GET', '/quick'), 200)
  assert.equal(held.length, SHARE)

  // 3. All of it comes back.
  for (const socket of [...first, ...waiting, ...others]) socket.destroy()
  await allQuiet(world)
})
