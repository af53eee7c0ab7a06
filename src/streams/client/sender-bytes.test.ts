import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { IdempotentSender } from '../parts/sender.ts'
import { createStreamClient } from './client.ts'

const busy = (error: unknown) => isOnceError(error, 'store_busy')

test('what is pending is bounded in bytes, also what a restart found; what is acknowledged makes room', async () => {
  const sizeOf = (message: string) => message.length
  const restored = { next: 2, pending: [{ number: 1, message: 'x'.repeat(6) }] }
  const sender = new IdempotentSender<string>({ mostPendingBytes: 10, sizeOf, restored })
  await sender.accept('x'.repeat(4))
  await assert.rejects(sender.accept('x'), busy)
  assert.deepEqual(
    sender.toSend().map(({ number }) => number),
    [1, 2],
  )
  await sender.acknowledge({ floor: 2 })
  assert.equal((await sender.accept('x'.repeat(6))).number, 3)
  await assert.rejects(sender.accept('x'), busy)
})

test('a client without a connection refuses more than it may keep, and loses nothing of it', async () => {
  const client = await createStreamClient({
    room: 'room',
    regions: ['eu'],
    transport: { connect: () => ({ send() {}, close() {} }) },
    mode: 'at-least-once',
    receiver: { message() {} },
    bounds: { pendingBytes: 10_000 },
  })
  const sent = await Promise.allSettled(Array.from({ length: 20 }, () => client.send('x'.repeat(1_000))))
  const kept = sent.filter(({ status }) => status === 'fulfilled')
  assert.equal(kept.length, 9)
  assert.equal(client.pending, 9)
  assert.ok(sent.every((each) => each.status === 'fulfilled' || busy(each.reason)))
  await client.stop()
})
