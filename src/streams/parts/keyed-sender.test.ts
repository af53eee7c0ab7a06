import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { ReceiveDedup } from './dedup.ts'
import { type Keyed, KeyedSender, type KeyedStorage } from './keyed-sender.ts'

test('what was not acknowledged is sent again under its key, and handled once', async () => {
  const sender = new KeyedSender<string>()
  const dedup = new ReceiveDedup<string>({ nowMs: () => performance.now() })
  const handled: string[] = []
  const receive = ({ key, message }: Keyed<string>) => dedup.process(key, () => `done: ${handled.push(message)}`)
  const keys = await Promise.all(['a', 'b', 'c'].map((message) => sender.send(message)))
  assert.equal(new Set(keys).size, 3)
  assert.ok(keys.every((key) => /^[0-9a-f]{32}$/.test(key)))
  for (const pending of sender.retryPending()) await receive(pending)
  // The acknowledgements of two were lost.
  assert.equal(await sender.acknowledge(keys[1] ?? ''), true)
  assert.equal(await sender.acknowledge(keys[1] ?? ''), false)
  assert.equal(await sender.acknowledge('never sent'), false)
  const again = sender.retryPending()
  assert.deepEqual(again, [
    { key: keys[0], message: 'a' },
    { key: keys[2], message: 'c' },
  ])
  const answers = await Promise.all(again.map(receive))
  assert.deepEqual(
    answers.map(({ result, duplicate }) => [result, duplicate]),
    [
      ['done: 1', true],
      ['done: 3', true],
    ],
  )
  assert.deepEqual(handled, ['a', 'b', 'c'])
  for (const { key } of again) await sender.acknowledge(key)
  assert.deepEqual([sender.pending, sender.retryPending()], [0, []])
})

test('a message is kept before it has a key, and a restart continues with what is kept', async () => {
  const saved = new Map<string, Keyed<string>>()
  let fails = false
  const storage: KeyedStorage<string> = {
    async save(keyed) {
      if (fails) throw new Error('disk full')
      saved.set(keyed.key, keyed)
    },
    remove: async (key) => void saved.delete(key),
  }
  let count = 0
  const sender = new KeyedSender<string>({ storage, newKey: () => `key-${++count}`, mostPending: 3 })
  assert.equal(await sender.send('a'), 'key-1')
  fails = true
  await assert.rejects(sender.send('b'), /disk full/)
  fails = false
  // What failed takes no room.
  await sender.send('c')
  await sender.send('d')
  await assert.rejects(sender.send('e'), (error) => isOnceError(error, 'store_busy'))
  await sender.acknowledge('key-1')
  const restored = [...saved.values()]
  const again = new KeyedSender<string>({ storage, restored })
  assert.deepEqual(again.retryPending(), [
    { key: 'key-3', message: 'c' },
    { key: 'key-4', message: 'd' },
  ])
  assert.equal(await again.acknowledge('key-3'), true)
  assert.deepEqual([...saved.keys()], ['key-4'])
})

test('what waits is bounded in bytes, and what is not durable does not leave', async () => {
  const kept = Promise.withResolvers<void>()
  const storage: KeyedStorage<string> = { save: () => kept.promise, remove: async () => {} }
  const sender = new KeyedSender<string>({ storage, mostPendingBytes: 10, sizeOf: (message) => message.length })
  const first = sender.send('x'.repeat(6))
  const second = sender.send('x'.repeat(5))
  assert.deepEqual(sender.retryPending(), [])
  kept.resolve()
  await assert.rejects(second, (error) => isOnceError(error, 'store_busy'))
  await sender.acknowledge(await first)
  await sender.send('x'.repeat(10))
  assert.equal(sender.pending, 1)
})
