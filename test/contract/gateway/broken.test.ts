import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'
import { openWire, raw } from './wire.ts'

const ANSWER = Buffer.from(
  'HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 13\r\nlocation: /things/7\r\n\r\n{"made":true}',
)
const HEAD_END = ANSWER.indexOf('\r\n\r\n') + 4

/** Every position would take a minute; these are all around the ends of lines, of the head and of the body. */
const cuts = [
  ...new Set([0, 1, 8, 12, 13, 20, 22, 23, 40, HEAD_END - 3, HEAD_END - 1, HEAD_END, HEAD_END + 1, ANSWER.length - 1]),
]

test('an answer that is cut anywhere: the upstream never sees a second forward', async (context) => {
  for (const end of ['reset', 'end'] as const) {
    const wire = await openWire(context, (request) => ({ write: ANSWER.subarray(0, cuts[request - 1]), finally: end }))
    const world = await openGateway(context, wire.url)
    for (const [at, cut] of cuts.entries()) {
      const key = `${end}-${cut}`
      const first = await world.ask({ key }).catch((error: unknown) => error as Error)
      const retry = await world.ask({ key })
      assert.equal(wire.requests, at + 1, `cut after ${cut} bytes: forwarded again`)
      if (cut < HEAD_END) {
        assert.ok(!(first instanceof Error), `cut after ${cut} bytes: ${String(first)}`)
        assert.deepEqual([first.status, first.problem], [502, 'upstream-broken'])
        assert.deepEqual([retry.status, retry.problem], [409, 'outcome-unknown'])
      } else {
        // The status arrived, so it is the outcome, although the body is incomplete.
        assert.ok(first instanceof Error, 'a cut answer must look like one')
        assert.deepEqual([retry.status, retry.problem], [409, 'response-not-stored'])
        assert.match(retry.body, /"status":201/)
      }
    }
  }
})

test('an answer without a length that is cut in its body settles by its status, too', async (context) => {
  const begun = Buffer.from('HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n')
  const wire = await openWire(context, () => ({ write: begun, finally: 'reset' }))
  const world = await openGateway(context, wire.url)
  await assert.rejects(world.ask())
  const retry = await world.ask()
  assert.deepEqual([retry.status, retry.problem, wire.requests], [409, 'response-not-stored', 1])
})

test('a connection that breaks while the request is still being sent is not sent again', async (context) => {
  const wire = await openWire(context, () => ({ readBytes: 1, finally: 'reset' }))
  const world = await openGateway(context, wire.url)
  for (const size of [10, 500_000, 3_000_000]) {
    const before = wire.requests
    const body = JSON.stringify('x'.repeat(size))
    const first = await world.ask({ key: `big-${size}`, body })
    assert.deepEqual([first.status, first.problem], [502, 'upstream-broken'])
    assert.equal((await world.ask({ key: `big-${size}`, body })).problem, 'outcome-unknown')
    assert.equal(wire.requests, before + 1)
  }
})

test('an upstream that does not answer in time: 504, and never again by itself', async (context) => {
  const wire = await openWire(context, () => ({ finally: 'stay' }))
  const world = await openGateway(context, wire.url, [{ ...things, timeouts: { answerMs: 50 } }])
  const first = await world.ask()
  assert.deepEqual([first.status, first.problem], [504, 'upstream-late'])
  assert.equal((await world.ask()).problem, 'outcome-unknown')
  assert.equal(wire.requests, 1)
})

test('a response that stalls after its beginning is cut, and settles by its status', async (context) => {
  const begun = Buffer.from('HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n')
  const timeouts = { idleMs: 100 }
  for (const write of [ANSWER.subarray(0, HEAD_END + 6), begun]) {
    const wire = await openWire(context, () => ({ write, finally: 'stay' }))
    const world = await openGateway(context, wire.url, [{ ...things, timeouts }], { timeouts })
    await assert.rejects(world.ask())
    const retry = await world.ask()
    assert.deepEqual([retry.status, retry.problem, wire.requests], [409, 'response-not-stored', 1])
    assert.match(retry.body, /"status":201/)
    await assert.rejects(world.ask({ method: 'GET' }), 'passed on')
  }
})

test('an upstream that honours keys is asked again under the same key', async (context) => {
  const wire = await openWire(context, (request) =>
    request === 1 ? { finally: 'reset' } : { write: ANSWER, finally: 'end' },
  )
  const world = await openGateway(context, wire.url, [{ ...things, honoursKeys: true }])
  const first = await world.ask()
  assert.deepEqual([first.status, first.body, wire.requests], [201, '{"made":true}', 2])
  assert.equal((await world.ask()).replayed, true)
  assert.equal(wire.requests, 2)
})

const IN_USE = Buffer.from('HTTP/1.1 409 Conflict\r\ncontent-length: 6\r\n\r\nin use')

test('an upstream that still works on the first try is asked again, and its 409 is not frozen', async (context) => {
  const wire = await openWire(context, (request) => {
    if (request === 1 || request === 5) return { finally: 'reset' }
    return { write: request === 4 || request >= 9 ? ANSWER : IN_USE, finally: 'end' }
  })
  const world = await openGateway(context, wire.url, [{ ...things, honoursKeys: true }])
  const first = await world.ask()
  // 1 breaks, 2 and 3 find it under way: the client gets the response of the service, and may retry.
  assert.deepEqual([first.status, first.body, wire.requests], [409, 'in use', 3])
  await world.advance(60_000)
  const done = await world.ask()
  assert.deepEqual([done.status, done.body, done.replayed, wire.requests], [201, '{"made":true}', false, 4])
  assert.equal((await world.ask()).replayed, true)
  // Also when the doubt is that of an earlier attempt: 5 breaks, 6 to 8 find it under way, and 8 was a new attempt.
  assert.equal((await world.ask({ key: 'two' })).status, 409)
  await world.advance(60_000)
  assert.deepEqual([(await world.ask({ key: 'two' })).status, wire.requests], [201, 9])
  assert.equal((await world.ask({ key: 'two' })).replayed, true)
})

test('a retry that cannot connect does not say that nothing was sent', async (context) => {
  const server = createServer((socket) => {
    server.close()
    socket.on('error', () => {}).once('data', () => socket.resetAndDestroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const world = await openGateway(context, url, [{ ...things, honoursKeys: true }])
  const answer = await world.ask()
  assert.deepEqual([answer.status, answer.problem], [503, 'upstream-unreachable'])
  assert.match(answer.body, /can be asked again under the same key/)
})

test('an upstream that honours keys and stays broken may be asked again by the client', async (context) => {
  const wire = await openWire(context, (request) =>
    request <= 3 ? { finally: 'reset' } : { write: ANSWER, finally: 'end' },
  )
  const world = await openGateway(context, wire.url, [{ ...things, honoursKeys: true }])
  const first = await world.ask()
  assert.deepEqual([first.status, first.problem, wire.requests], [503, 'upstream-unreachable', 3])
  await world.advance(60_000)
  assert.equal((await world.ask()).status, 201)
})

test('a client that is cut anywhere in its request: forwarded whole or not at all, and then once', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const body = '{"amount":1}'
  for (const chunked of [false, true]) {
    const framing = chunked
      ? `transfer-encoding: chunked\r\n\r\nc\r\n${body}\r\n0\r\n\r\n`
      : `content-length: 12\r\n\r\n${body}`
    const request = (key: string) =>
      `POST /things HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\n${framing}`
    const length = request('k-100').length
    for (let cut = length - 30; cut <= length; cut += 3) {
      const key = `k-${cut}`
      await raw(world.port, request(key), { cutAfter: cut })
      const retry = await world.ask({ key })
      assert.equal(retry.status, 201)
      const forwards = upstream.seen.filter(({ headers }) => headers['idempotency-key'] === key)
      assert.deepEqual(
        forwards.map((each) => each.body),
        [body],
        `cut after ${cut} of ${length} bytes`,
      )
    }
  }
  assert.equal(upstream.heads, upstream.seen.length, 'half a request was forwarded')
})

test('a connection that was idle for too long is not used for what must not be sent twice', async (context) => {
  const wire = await openWire(context, () => ({ write: ANSWER, finally: 'stay' }))
  const world = await openGateway(context, wire.url)
  let asked = 0
  const connectionsAfter = async () => {
    assert.equal((await world.ask({ key: `key-${++asked}` })).status, 201)
    return wire.connections
  }
  let known = await connectionsAfter()
  // A busy machine may need too long between two requests; sooner or later one comes in time.
  await until(
    'a fresh connection is used again',
    async () => {
      const before = known
      known = await connectionsAfter()
      return known - before
    },
    (more) => more === 0,
  )
  // Longer than a connection counts as fresh, and shorter than it is kept for others.
  await sleep(1_200)
  assert.equal(await connectionsAfter(), known + 1)
  assert.equal(wire.requests, asked)
})
