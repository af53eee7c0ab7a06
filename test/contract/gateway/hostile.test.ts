import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guarded, openCounting, openGateway, things } from '../../support/gateway/world.ts'
import { raw } from './wire.ts'

const head = (more: string) =>
  `POST /things HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: smuggle\r\nContent-Type: text/plain\r\n${more}`
const next = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n'

const attacks: Readonly<Record<string, string>> = {
  'a length and chunks': head(`Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${next}`),
  'chunks and a length': head(`Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${next}`),
  'two lengths': head(`Content-Length: 4\r\nContent-Length: 40\r\n\r\nabcd${next}`),
  'two equal lengths': head('Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd'),
  'a list of lengths': head('Content-Length: 4, 4\r\n\r\nabcd'),
  'a signed length': head('Content-Length: +4\r\n\r\nabcd'),
  'a hexadecimal length': head('Content-Length: 0x4\r\n\r\nabcd'),
  'a chunk without a size': head('Transfer-Encoding: chunked\r\n\r\nzz\r\nabcd\r\n0\r\n\r\n'),
  'a negative chunk': head('Transfer-Encoding: chunked\r\n\r\n-4\r\nabcd\r\n0\r\n\r\n'),
  'a chunk that is longer than it says': head('Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n'),
  'an unknown coding': head('Transfer-Encoding: xchunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n'),
  'chunked before another coding': head('Transfer-Encoding: chunked, identity\r\n\r\n4\r\nabcd\r\n0\r\n\r\n'),
  'a coding behind a tab': head('Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n\r\n4\r\nabcd\r\n0\r\n\r\n'),
  'a space before the colon': head('Content-Length : 4\r\n\r\nabcd'),
  'a folded header': head('Content-Length: 4\r\nX: a\r\n b\r\nTransfer-Encoding\r\n : chunked\r\n\r\nabcd'),
  'a header without a name': head(': x\r\nContent-Length: 4\r\n\r\nabcd'),
  'a NUL in a header': head('X: a\0b\r\nContent-Length: 4\r\n\r\nabcd'),
  'a bare CR': head('X: a\rTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nabcd'),
  'no host': `POST /things HTTP/1.1\r\nConnection: close\r\nIdempotency-Key: smuggle\r\nContent-Length: 4\r\n\r\nabcd`,
  'a head without end': head(`X: ${'a'.repeat(40_000)}\r\n\r\n`),
  'a backslash in the path': `POST /things\\..\\x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  'a broken percent-encoding': `POST /things%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
}

test('what two parsers could read in two ways is refused, and nothing of it is forwarded', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  for (const [what, bytes] of Object.entries(attacks)) {
    const answer = await raw(world.port, Buffer.from(bytes, 'latin1'))
    assert.match(answer, /^HTTP\/1\.1 4\d\d |^$/, `${what}: ${answer.slice(0, 200)}`)
    assert.equal(upstream.heads, 0, `${what} was forwarded`)
  }
})

test('a body over the cap is refused before anything is forwarded, also one without a content length', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...things, maxBodyBytes: 2_000_000 }])
  const large = await world.ask({ body: JSON.stringify('x'.repeat(2_000_000)) })
  assert.deepEqual([large.status, large.problem], [413, 'content-too-large'])
  const chunk = `${(500_000).toString(16)}\r\n${'x'.repeat(500_000)}\r\n`
  const chunked = await raw(world.port, head(`Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(5)}0\r\n\r\n`))
  assert.match(chunked, /^HTTP\/1\.1 413 /)
  const expecting = await raw(world.port, head('Expect: 100-continue\r\nContent-Length: 9000000\r\n\r\n'))
  assert.match(expecting, /^HTTP\/1\.1 413 /, 'the refusal comes before the body is sent')
  assert.equal(upstream.heads, 0)
  const fits = await world.ask({ key: 'fits', body: JSON.stringify('x'.repeat(1_900_000)) })
  assert.deepEqual([fits.status, fits.body], [201, '{"got":1900002}'], 'what is in a file is forwarded whole')
  assert.equal((await world.ask({ key: 'fits', body: JSON.stringify('x'.repeat(1_900_000)) })).replayed, true)
  assert.equal((await world.ask({ key: 'fits', body: JSON.stringify('y'.repeat(1_900_000)) })).status, 409)
})

test('a body that comes too slowly is given up, and was never forwarded', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...things, timeouts: { bodyMs: 80 } }], {
    timeouts: { idleMs: 80 },
  })
  const slow = await raw(world.port, head('Content-Length: 10\r\n\r\nabc'))
  assert.match(slow, /^HTTP\/1\.1 408 .*request-too-slow/s)
  assert.equal(upstream.heads, 0)
  const passed = await raw(world.port, head('Content-Length: 10\r\n\r\nabc').replace('/things', '/others'))
  assert.match(passed, /^HTTP\/1\.1 408 .*request-too-slow/s)
  assert.equal(upstream.heads, 0)
})

test("the gateway's own word in a request means nothing", async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [guarded])
  const headers = { 'onceonly-content-key': 'mine', 'onceonly-credentials': 'mine' }
  await world.ask({ key: null, headers })
  assert.equal((await world.ask({ key: null, body: '{"amount":2}', headers })).replayed, false)
  assert.equal(upstream.heads, 2)
})
