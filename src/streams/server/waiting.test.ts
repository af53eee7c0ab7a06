import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { CausalBuffer } from '../parts/causal.ts'
import { createStreamRegion } from './region.ts'
import { enter, send } from './test-peer.ts'

test('what waits for its causes is bounded in bytes; refused entries are delivered again', () => {
  const buffer = new CausalBuffer<string>({ mostBufferedBytes: 10, sizeOf: (message) => message.length })
  const from = (number: number, message: string) => ({ sender: 'b', clock: { a: 1, b: number }, message })
  assert.equal(buffer.receive(from(1, 'x'.repeat(6))).kind, 'buffered')
  assert.deepEqual(buffer.receive(from(2, 'x'.repeat(5))), { kind: 'refused', missing: { a: 1, b: 1 } })
  assert.equal(buffer.receive(from(2, 'x'.repeat(4))).kind, 'buffered')
  assert.deepEqual([buffer.buffered, buffer.bufferedBytes], [2, 10])
  // What needs not to wait needs no room.
  const cause = buffer.receive({ sender: 'a', clock: { a: 1 }, message: 'x'.repeat(50) })
  assert.equal(cause.kind === 'delivered' && cause.messages.length, 3)
  assert.deepEqual([buffer.buffered, buffer.bufferedBytes], [0, 0])
  assert.equal(buffer.receive({ sender: 'b', clock: { c: 1, b: 3 }, message: 'x'.repeat(10) }).kind, 'buffered')
})

test('a region that may keep little of what waits shows everything all the same, in order', async () => {
  const own = createRuntime()
  // A question into the cut is given up soon, because the test waits for the next one.
  const runtime: Runtime = {
    ...own,
    setTimer: (ms, fire, background) => own.setTimer(Math.min(ms, 50), fire, background),
  }
  let cut = true
  const way = (from: string, to: string) => ({ cut: cut && from !== 'b' && to !== 'b', delayMs: 0 })
  const exchange = createLocalExchange({ way, runtime })
  const names = ['a', 'b', 'c']
  const regions = names.map((region) =>
    createStreamRegion({
      region,
      log: createMemoryRoomLog({ region, nowMs: () => performance.now() }),
      peers: names.filter((peer) => peer !== region),
      exchange: exchange.of(region),
      bounds: { detourMs: 1e9, pullEveryMs: 20, pullRetryCapMs: 50, dozeMs: 50, waitingBytes: 5_000 },
    }),
  )
  const [ann, bob, cid] = await Promise.all(regions.map((region, index) => enter(region, `client${index}`)))
  assert.ok(ann !== undefined && bob !== undefined && cid !== undefined)
  cid.say(send(1, 'cause'))
  await bob.next('deliver')
  const effects = Array.from({ length: 30 }, (_, index) => `${index} ${'x'.repeat(1_000)}`)
  for (const [index, body] of effects.entries()) {
    bob.say({ kind: 'send', cseq: index + 1, seen: { 'c.1': 1 }, replyTo: null, body })
  }
  await until('all are accepted', () => bob.frames.some((frame) => frame.kind === 'ack' && frame.floor === 31))
  cut = false
  const shown = () => ann.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : []))
  await until('all are shown', () => shown().length === 31)
  assert.deepEqual(
    shown().map((entry) => ('body' in entry ? entry.body : null)),
    ['cause', ...effects],
  )
  await Promise.all(regions.map((region) => region.stop()))
})
