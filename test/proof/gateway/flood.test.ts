import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { allQuiet, askFrom, flood, QUIET } from '../../support/gateway/flood.ts'
import { openCounting, openGateway, openServer } from '../../support/gateway/world.ts'

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
  const refused = () => others.filter(({ received = '' }) => received.startsWith('HTTP/1.1 503'))
  let longest = 0
  await until('each waits or was refused', () => {
    longest = Math.max(longest, world.load.waiting)
    return world.load.waiting + refused().length === others.length
  })
  assert.ok(longest <= SHARE, `${longest} waited at once`)
  assert.match(refused()[0]?.received ?? '', /retry-after: [1-5]\r.*too-busy.*"retryable":true/is)
  assert.equal(await askFrom(QUIET, world.port, 'GET', '/quick'), 200)
  assert.equal(held.length, SHARE)

  // 3. All of it comes back.
  for (const socket of [...first, ...waiting, ...others]) socket.destroy()
  await allQuiet(world)
})

const TRICKLE = 'POST /others HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'

test('bodies without a length that stop after a byte leave places for others, and are cut', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const sockets = flood(context, world.port, 1_100, TRICKLE)
  const ended = () => sockets.filter(({ received }) => received !== undefined).length
  await until('each is sent on, waits, or has ended', () => {
    const { underWay, waiting } = world.load
    return underWay + waiting + ended() === sockets.length
  })
  assert.ok(world.load.underWay <= SHARE)
  assert.equal(await askFrom(QUIET, world.port, 'GET', '/others'), 201)
  assert.equal(await askFrom(QUIET, world.port, 'POST', '/things', '{}'), 201)
  await until('all of them are cut', () => ended() === sockets.length)
  assert.ok(sockets.every(({ received = '' }) => /^HTTP\/1\.1 (?:408|503) /.test(received)))
  assert.ok(sockets.some(({ received = '' }) => received.includes('request-too-slow')))
  await allQuiet(world)
})
