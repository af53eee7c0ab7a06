import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClientPosition, createMemoryStorage, type OpenClientStorage } from 'onceonly/stream'
import { createQuietStorage } from './quiet-storage.ts'

const at = (n: number): ClientPosition => ({ logs: { 'eu.1': n }, ordered: 0 })

test('a thousand positions that come at once are two writes, and the last one is kept', async () => {
  const written: ClientPosition[] = []
  const memory = createMemoryStorage()
  const inner: OpenClientStorage = {
    ...memory,
    async advance(position) {
      written.push(position)
      await new Promise(setImmediate)
      await memory.advance(position)
    },
    stop: async () => undefined,
  }
  await memory.identify({ client: 'ada', epoch: 1, generation: 1 })
  const storage = createQuietStorage(inner, (error) => assert.ifError(error))
  for (let n = 1; n <= 1_000; n += 1) await storage.advance(at(n))
  await storage.stop()
  assert.deepEqual(written, [at(1), at(1_000)])
  assert.deepEqual((await storage.load())?.position, at(1_000))
})

test('a write that fails is reported, and the next one is made', async () => {
  const failures: unknown[] = []
  const written: ClientPosition[] = []
  const inner: OpenClientStorage = {
    ...createMemoryStorage(),
    async advance(position) {
      if (position.logs['eu.1'] === 1) throw new Error('the disk is full')
      written.push(position)
    },
    stop: async () => undefined,
  }
  const storage = createQuietStorage(inner, (error) => failures.push(error))
  await storage.advance(at(1))
  await storage.advance(at(2))
  await storage.stop()
  assert.equal(failures.length, 1)
  assert.deepEqual(written, [at(2)])
})
