import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { createMemoryOrderLog } from '../log/memory-order.ts'
import type { Exchange, OrderLog, RoomLog } from '../ports.ts'
import { Doze } from './doze.ts'
import { createStreamRegion } from './region.ts'
import { enter, send } from './test-peer.ts'

test('what waits for a cause is asked for calmly, and is there as soon as the cause is', async () => {
  let cut = true
  const apart = (from: string, to: string) => cut && from !== 'b' && to !== 'b'
  const exchange = createLocalExchange({ way: (from, to) => ({ cut: apart(from, to), delayMs: 0 }) })
  let pulls = 0
  const open = (name: string) => {
    const own = exchange.of(name)
    return createStreamRegion({
      region: name,
      log: createMemoryRoomLog({ region: name, nowMs: () => performance.now() }),
      peers: ['a', 'b', 'c'].filter((peer) => peer !== name),
      // No detour around the cut: the cause arrives when it is healed, and not before.
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

test('a peer that leaves pulls unanswered is silent since the first of them, until it answers', async () => {
  let cut = false
  const exchange = createLocalExchange()
  const [a, b] = ['a', 'b'].map((region) => {
    const own = exchange.of(region)
    const pull: Exchange['pull'] = (peer, request) =>
      cut ? Promise.reject(new Error('the way is cut')) : own.pull(peer, request)
    return createStreamRegion({
      region,
      log: createMemoryRoomLog({ region, nowMs: () => performance.now() }),
      peers: region === 'a' ? ['b'] : ['a'],
      bounds: { pullEveryMs: 1, pullRetryBaseMs: 1, pullRetryCapMs: 5, dozeMs: 1 },
      exchange: { ...own, pull },
    })
  })
  assert.ok(a !== undefined && b !== undefined)
  const silentMs = () => a.silences().map(({ peer, ms }) => (assert.equal(peer, 'b'), ms))[0] ?? -1
  assert.equal(silentMs(), 0, 'without a room nothing is asked')
  await enter(a, 'ann')
  await until('b has answered', () => silentMs() === 0)
  cut = true
  // Several pulls fail meanwhile: each leaves the beginning as it is.
  await until('b is silent', () => silentMs() > 100)
  cut = false
  await until('b answers again', () => silentMs() === 0)
  await Promise.all([a.stop(), b.stop()])
})

test('waits double up to the most, and are short again after something happened', () => {
  const doze = new Doze(100, 350)
  const waits = Array.from({ length: 4 }, () => {
    const { waitMs } = doze
    doze.nothing()
    return waitMs
  })
  assert.deepEqual(waits, [100, 200, 350, 350])
  assert.deepEqual([doze.stir(), doze.waitMs, doze.stir()], [true, 100, false])
  assert.equal(new Doze(500, 350).waitMs, 500)
})

test('a quiet room polls ever less often, and wakes with the next message', async () => {
  const exchange = createLocalExchange()
  const memory = createMemoryOrderLog({ nowMs: () => performance.now() })
  let looks = 0
  const order: OrderLog = {
    ...memory,
    read(...asked) {
      looks += 1
      return memory.read(...asked)
    },
  }
  const regions = ['a', 'b'].map((region) => {
    const own = exchange.of(region)
    const log = createMemoryRoomLog({ region, nowMs: () => performance.now() })
    const peers = ['a', 'b'].filter((peer) => peer !== region)
    const pull: Exchange['pull'] = (peer, request) => {
      looks += 1
      return own.pull(peer, request)
    }
    const read: RoomLog['read'] = (...asked) => {
      looks += 1
      return log.read(...asked)
    }
    const bounds = { pullEveryMs: 1, orderEveryMs: 1, dozeMs: 1e9 }
    return createStreamRegion({ region, log: { ...log, read }, order, exchange: { ...own, pull }, peers, bounds })
  })
  const [ann, bob] = await Promise.all(regions.map((region, index) => enter(region, `client${index}`)))
  assert.ok(ann !== undefined && bob !== undefined)
  await pause(300)
  // Three kinds of looks in two regions, each after one millisecond, two, four and so on.
  assert.ok(looks < 100, `${looks} looks`)
  for (const cseq of [1, 2]) {
    ann.say(send(cseq, 'awake?'))
    await Promise.all([ann.next('order'), bob.next('order')])
  }
  await Promise.all(regions.map((region) => region.stop()))
})
