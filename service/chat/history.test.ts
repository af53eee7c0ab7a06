import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryOrderLog, createMemoryRoomLog } from 'onceonly/stream/server'
import { readHistory } from './history.ts'

test('of a room with more than a history holds the newest are shown, with their places', async () => {
  const nowMs = () => performance.now()
  const log = createMemoryRoomLog({ region: 'eu', nowMs })
  const order = createMemoryOrderLog({ nowMs })
  await log.enter('room', { client: 'ada', epoch: 1, generation: 1, instance: 'i' })
  const body = { text: 'x'.repeat(50_000) }
  const message = { client: 'ada', epoch: 1, generation: 1, seen: {}, replyTo: null, body, digest: 'x' }
  const sends = Array.from({ length: 100 }, (_, index) => ({ ...message, cseq: index + 1 }))
  await log.write('room', { merged: [], sends })
  const claimed = await order.claim('room', 'eu', 1_000)
  assert.ok(claimed.kind === 'held')
  await order.append('room', { fence: claimed.fence, identities: sends.slice(0, 98), position: {} })
  const shown = await readHistory(log, order, 'room')
  // Two megabytes hold forty-one of these.
  assert.deepEqual([shown.length, shown[0]?.cseq, shown.at(-1)?.cseq], [41, 60, 100])
  assert.deepEqual(
    shown.slice(-4).map(({ final }) => final),
    [97, 98, null, null],
  )
})
