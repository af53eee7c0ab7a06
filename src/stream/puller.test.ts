import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createLocalExchange } from './exchange-local.ts'
import { createMemoryRoomLog } from './memory-log.ts'
import { createRegion } from './region.ts'
import { enter, send, until } from './test-peer.ts'

test('what waits for a cause is asked for calmly, and is there as soon as the cause is', async () => {
  let cut = true
  const apart = (from: string, to: string) => cut && from !== 'b' && to !== 'b'
  const exchange = createLocalExchange({ way: (from, to) => ({ cut: apart(from, to), delayMs: 0 }) })
  let pulls = 0
  const open = (name: string) => {
    const own = exchange.of(name)
    return createRegion({
      region: name,
      log: createMemoryRoomLog({ region: name, nowMs: () => performance.now() }),
      peers: ['a', 'b', 'c'].filter((peer) => peer !== name),
      // Nobody goes round the cut: the cause comes when it is healed, and not before.
      bounds: { detourMs: 1e9, pullRetryCapMs: 50 },
      exchange: {
        ...own,
        async pull(peer, request) {
          if (apart(name, peer)) throw new Error('the way is cut')
          if (name === 'a' && peer === 'b') pulls += 1
          return own.pull(peer, request)
        },
      },
    })
  }
  const regions = ['a', 'b', 'c'].map(open)
  const [ann, bob, cid] = await Promise.all(regions.map((region, index) => enter(region, `client${index}`)))
  assert.ok(ann !== undefined && bob !== undefined && cid !== undefined)
  cid.say(send(1, 'cause'))
  await bob.next('deliver')
  bob.say({ kind: 'send', cseq: 1, seen: { 'c.1': 1 }, replyTo: null, body: 'effect' })
  await bob.next('ack')
  await until('the effect was pulled, or came by a hint', () => pulls > 0)
  const before = pulls
  await pause(300)
  assert.ok(pulls - before <= 3, `${pulls - before} pulls in 300 ms`)
  assert.ok(!ann.frames.some(({ kind }) => kind === 'deliver'))
  cut = false
  const shown = () => ann.frames.flatMap((frame) => (frame.kind === 'deliver' ? frame.entries : []))
  await until('both in order', () => shown().length === 2)
  assert.deepEqual(
    shown().map(({ log }) => log),
    ['c.1', 'b.1'],
  )
  await Promise.all(regions.map((region) => region.stop()))
})
