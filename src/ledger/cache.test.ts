import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuntime } from '../runtime/test-runtime.ts'
import type { Replayable } from './cache.ts'
import { createReplayCache } from './cache.ts'
import { DAY, limits } from './core/limits.ts'

const STORE_NOW = 1_000_000

function recordOf(id: string, { bytes = 10, livesMs = DAY } = {}): Replayable {
  const outcome = { kept: 'response', data: 'x'.repeat(bytes) }
  return { state: 'succeeded', id, outcome, expiresAt: STORE_NOW + livesMs } as Replayable
}

function scene() {
  const runtime = createTestRuntime()
  const cache = createReplayCache(runtime)
  return { runtime, cache, put: (record: Replayable) => cache.put(record, STORE_NOW, runtime.monotonicMs()) }
}

test('an outcome is fresh for a second, and then only a hint', async () => {
  const { runtime, cache, put } = scene()
  assert.equal(cache.get('a'), null)
  const record = recordOf('a')
  put(record)
  await runtime.advance(limits.replayCacheMs - 1)
  assert.equal(cache.fresh('a')?.record, record)
  await runtime.advance(1)
  assert.deepEqual([cache.get('a')?.record, cache.fresh('a')], [record, null])
  put(record)
  assert.notEqual(cache.fresh('a'), null)
})

test('an outcome is never fresh past its retention', async () => {
  const { runtime, cache, put } = scene()
  put(recordOf('a', { livesMs: 300 }))
  await runtime.advance(299)
  assert.notEqual(cache.fresh('a'), null)
  await runtime.advance(1)
  assert.deepEqual([cache.get('a') !== null, cache.fresh('a')], [true, null])
  put(recordOf('gone', { livesMs: 0 }))
  assert.deepEqual([cache.get('gone') !== null, cache.fresh('gone')], [true, null])
})

test('an answer that took long is old when it comes', async () => {
  const { runtime, cache } = scene()
  const askedAt = runtime.monotonicMs()
  await runtime.advance(limits.replayCacheMs - 1)
  cache.put(recordOf('a'), STORE_NOW, askedAt)
  assert.notEqual(cache.fresh('a'), null)
  await runtime.advance(1)
  assert.deepEqual([cache.get('a') !== null, cache.fresh('a')], [true, null])
})

test('a notification drops what it names, or everything', () => {
  const { cache, put } = scene()
  for (const id of ['a', 'b', 'c']) put(recordOf(id))
  cache.drop(['a', 'unknown'])
  assert.deepEqual(
    ['a', 'b', 'c'].map((id) => cache.get(id) !== null),
    [false, true, true],
  )
  cache.drop(null)
  assert.deepEqual([cache.get('b'), cache.get('c')], [null, null])
})

test('the cache is bounded in bytes, and the oldest go first', () => {
  const { cache, put } = scene()
  const bytes = limits.replayCacheBytes / 4
  for (const id of ['a', 'b', 'c']) put(recordOf(id, { bytes }))
  // Put again, it is the youngest.
  put(recordOf('a', { bytes }))
  put(recordOf('d', { bytes }))
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((id) => cache.get(id) !== null),
    [true, false, true, true],
  )
})

test('what is larger than the whole cache is not kept, and replaces what was', () => {
  const { cache, put } = scene()
  put(recordOf('small'))
  put(recordOf('a'))
  put(recordOf('a', { bytes: limits.replayCacheBytes }))
  assert.equal(cache.get('a'), null)
  assert.notEqual(cache.get('small'), null)
})

test('the count of bytes does not drift', () => {
  const { cache, put } = scene()
  const bytes = limits.replayCacheBytes / 3
  for (let round = 0; round < 50; round++) {
    put(recordOf('a', { bytes }))
    put(recordOf('b', { bytes: 10 }))
    cache.drop(round % 2 === 0 ? ['a'] : null)
  }
  for (const id of ['a', 'b']) put(recordOf(id, { bytes }))
  assert.deepEqual([cache.get('a') !== null, cache.get('b') !== null], [true, true])
})

test('a value that replays share counts, and is gone with its record', () => {
  const { cache, put } = scene()
  const record = recordOf('a', { bytes: Math.floor(limits.replayCacheBytes / 4) })
  put(record)
  const cached = cache.get('a')
  assert.ok(cached !== null)
  cache.share(cached, 'shared')
  assert.equal(cache.get('a')?.shared, 'shared')
  put(recordOf('b', { bytes: Math.floor(limits.replayCacheBytes / 4) }))
  assert.deepEqual([cache.get('a'), cache.get('b') === null], [null, false], 'three copies of one and one of the other')
  put(record)
  assert.equal(cache.get('a')?.shared, undefined)
})

test('what the store did not say is never fresh, and known for its retention', async () => {
  const { runtime, cache } = scene()
  cache.keep(recordOf('a', { livesMs: 5_000 }), STORE_NOW, runtime.monotonicMs())
  assert.deepEqual([cache.fresh('a'), cache.known('a') !== null], [null, true])
  await runtime.advance(4_999)
  assert.notEqual(cache.known('a'), null)
  await runtime.advance(1)
  assert.equal(cache.known('a'), null)
})
