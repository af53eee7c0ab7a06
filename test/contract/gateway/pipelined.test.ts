import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway } from '../../support/gateway/world.ts'
import { raw } from './wire.ts'

const READ = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'
const CHANGE = 'POST /next HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'
const UPGRADE = 'GET /next HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
const EXPECTED = 'POST /next HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}'

/** Heads that are refused, with what may be their body or not. */
const refused: Readonly<Record<string, string>> = {
  'another coding': 'POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n',
  'a coding in HTTP/1.0': 'POST /first HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'two hosts': 'POST /first HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}',
  'no path': 'POST /%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
}

test('bytes behind a refused head on its connection are no request', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ method: 'POST', path: '/*' }])
  for (const [what, first] of Object.entries(refused)) {
    for (const next of [READ, CHANGE, UPGRADE, EXPECTED]) {
      // A connection to the upstream that is free at once: otherwise the end of this one would come first.
      await world.ask({ method: 'GET', path: '/before' })
      const answer = await raw(world.port, first + next)
      assert.match(answer, /^HTTP\/1\.1 400 /, what)
      assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, `${what}: one answer`)
    }
  }
  // Whatever was on its way has arrived before this one.
  await world.ask({ path: '/last' })
  assert.deepEqual(
    upstream.seen.map(({ url }) => url).filter((url) => url !== '/before'),
    ['/last'],
  )
})

test('requests that stand behind each other are forwarded one by one, each as it is', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ method: 'POST', path: '/*' }])
  const one = (name: string, more = '') =>
    `POST /${name} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: ${name}\r\nContent-Length: ${name.length}\r\n${more}\r\n${name}`
  const answer = await raw(world.port, one('a') + one('bb') + one('a') + one('ccc', 'Connection: close\r\n'))
  assert.deepEqual(
    answer.match(/^\{"got":\d+\}/gm),
    ['{"got":1}', '{"got":2}', '{"got":1}', '{"got":3}'],
    'in the order in which they were asked',
  )
  assert.deepEqual(upstream.seen.map(({ url, body }) => `${url} ${body}`).toSorted(), ['/a a', '/bb bb', '/ccc ccc'])
})
