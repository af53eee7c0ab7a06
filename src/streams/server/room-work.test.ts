import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { until } from '../../testing/until.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import { createMemoryOrderLog } from '../log/memory-order.ts'
import type { ClientFrame } from '../protocol/protocol.ts'
import { connectRaw, hello, openRegion } from './test-peer.ts'

const ROOMS = 50

test('of many rooms that are opened together a few at a time are at the store, and all of them open', async () => {
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  const order = createMemoryOrderLog({ nowMs: () => performance.now() })
  let [under, most, calls] = [0, 0, 0]
  /** A store that takes a moment. */
  const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
    calls += 1
    under += 1
    most = Math.max(most, under)
    await turn()
    try {
      return await work()
    } finally {
      under -= 1
    }
  }
  const { region } = openRegion({
    log: { ...log, open: (room) => slowly(() => log.open(room)) },
    order: { ...order, claim: (...args) => slowly(() => order.claim(...args)) },
    bounds: { roomWork: 3 },
  })
  const people = Array.from({ length: ROOMS }, (_, n) => {
    const peer = connectRaw(region)
    peer.say({ ...hello(`client${n}`), room: `room${n}` } as ClientFrame)
    return peer
  })
  await Promise.all(people.map((peer) => peer.next('welcome')))
  await until('each has asked for its order', () => calls >= 2 * ROOMS)
  assert.equal(most, 3)
  await region.stop()
})
