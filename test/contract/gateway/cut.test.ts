import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openGateway, things } from '../../support/gateway/world.ts'
import { openWire, type WireAct } from './wire.ts'

const rule = { ...things, honoursKeys: true } as const
const head = 'HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n'
const cut: WireAct = { write: Buffer.from(`${head}Content-Length: 4\r\n\r\nma`), finally: 'reset' }
const whole: WireAct = { write: Buffer.from(`${head}Content-Length: 4\r\n\r\nmade`), finally: 'stay' }
const cutStream: WireAct = {
  write: Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n2\r\nma\r\n`),
  finally: 'reset',
}

test('an upstream that honours keys is asked again for an answer that was cut', async (context) => {
  const wire = await openWire(context, (number) => (number === 1 ? cut : whole))
  const world = await openGateway(context, wire.url, [rule])
  assert.equal((await world.ask()).body, 'made')
  assert.equal(wire.requests, 2)
  const retry = await world.ask()
  assert.deepEqual([retry.body, retry.replayed, wire.requests], ['made', true, 2])
})

test('a response that was cut after its head was forwarded is requested again by the retry', async (context) => {
  const wire = await openWire(context, (number) => (number === 1 ? cutStream : whole))
  const world = await openGateway(context, wire.url, [rule])
  await assert.rejects(world.ask(), 'the client sees that it is not all')
  assert.equal((await world.ask()).body, 'made')
  assert.equal(wire.requests, 2)
})

test('an upstream that cuts every response is not called forever', async (context) => {
  const wire = await openWire(context, () => cut)
  const world = await openGateway(context, wire.url, [rule])
  const answer = await world.ask()
  assert.deepEqual([answer.status, answer.problem], [503, 'upstream-unreachable'])
  assert.ok(wire.requests >= 2 && wire.requests <= 20, String(wire.requests))
})

test('without keys of its own a cut answer is the outcome, and nothing is sent again', async (context) => {
  const wire = await openWire(context, (number) => (number === 1 ? cut : whole))
  const world = await openGateway(context, wire.url, [things])
  await assert.rejects(world.ask())
  assert.equal((await world.ask()).problem, 'response-not-stored')
  assert.equal(wire.requests, 1)
})

test('a refusal that was cut while an earlier try is in doubt leaves the key to the retry', async (context) => {
  const busy = 'HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n'
  const acts: readonly WireAct[] = [{ finally: 'reset' }, { write: Buffer.from(busy), finally: 'reset' }]
  const wire = await openWire(context, (number) => acts[number - 1] ?? whole)
  // A retry that finds a running attempt is refused at once, so that it does not wait for a lease to end.
  const world = await openGateway(context, wire.url, [{ ...rule, whileRunning: 'conflict' }])
  await assert.rejects(world.ask(), 'the client sees that it is not all')
  assert.equal((await world.ask()).body, 'made')
  assert.equal(wire.requests, 3)
})
