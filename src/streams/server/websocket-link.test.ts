import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime } from '../../runtime/runtime.ts'
import { streamLimits } from '../limits.ts'
import type { ServerSocket } from './websocket-driver.ts'
import { openLink } from './websocket-link.ts'

/** A connection whose network takes what the test allows. */
function slowSocket() {
  const waiting: { readonly bytes: number; taken(): void }[] = []
  const sizes = () => waiting.reduce((sum, { bytes }) => sum + bytes, 0)
  const socket: ServerSocket = {
    protocol: 'onceonly.v1+json',
    get bufferedAmount() {
      return sizes()
    },
    send: (text, taken) => void waiting.push({ bytes: text.length, taken }),
    ping() {},
    pause() {},
    resume() {},
    close() {},
    terminate() {},
    on() {},
  }
  return { socket, take: () => waiting.shift()?.taken() }
}

test('a connection that was full is drained at half of the bound, and any other one when all is taken', () => {
  const { socket, take } = slowSocket()
  let drained = 0
  const session = { received() {}, drained: () => void (drained += 1), closed() {} }
  const link = openLink(socket, createRuntime(), () => session)
  // A region whose bound is smaller than the usual one waits after this much already.
  for (const text of ['x'.repeat(1_000), 'x'.repeat(1_000)]) link.send(text)
  take()
  assert.deepEqual([drained, link.bufferedBytes], [0, 1_000])
  take()
  assert.deepEqual([drained, link.bufferedBytes], [1, 0])
  const quarter = 'x'.repeat(streamLimits.linkBytes / 4)
  for (let n = 0; n < 4; n++) link.send(quarter)
  take()
  assert.equal(drained, 1)
  take()
  assert.deepEqual([drained, link.bufferedBytes], [2, streamLimits.linkBytes / 2])
  take()
  assert.equal(drained, 2)
  take()
  assert.equal(drained, 3)
})
