import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { ReceiveDedup } from './dedup.ts'

test('a key is never forgotten before its time: with too many of them a new one is refused', async () => {
  let nowMs = 0
  let runs = 0
  const effect = () => ++runs
  const dedup = new ReceiveDedup<number>({ nowMs: () => nowMs })
  for (let key = 0; key < 100_000; key++) await dedup.process(`${key}`, effect)
  nowMs = 60_000
  await assert.rejects(
    dedup.process('one too many', effect),
    (error) => isOnceError(error, 'dedup_full') && error.retryable && error.retryAfterMs === 4 * 60_000,
  )
  assert.deepEqual(await dedup.process('0', effect), { result: 1, duplicate: true })
  assert.equal(runs, 100_000)
  nowMs = 5 * 60_000
  assert.equal((await dedup.process('one too many', effect)).duplicate, false)
})

test('effects that hang stop neither the clean-up nor anything else', async () => {
  let nowMs = 0
  const dedup = new ReceiveDedup<number>({ nowMs: () => nowMs, ttlMs: 10, mostKeys: 20 })
  for (let key = 0; key < 8; key++) void dedup.process(`hangs ${key}`, () => new Promise(() => {}))
  for (let round = 0; round < 10; round++) {
    nowMs += 10
    for (let key = 0; key < 12; key++) await dedup.process(`${round} ${key}`, () => key)
    assert.deepEqual(await dedup.process(`${round} 0`, () => -1), { result: 0, duplicate: true })
  }
  assert.ok(dedup.size <= 20, `${dedup.size}`)
})

test('a full memory that may forget reports what was forgotten', async () => {
  const evicted: string[] = []
  const onEvict = (key: string) => void evicted.push(key)
  const dedup = new ReceiveDedup<string>({ nowMs: () => 0, mostKeys: 2, onEvict })
  for (const key of ['a', 'b', 'c']) await dedup.process(key, () => key)
  assert.deepEqual(evicted, ['a'])
  assert.deepEqual(await dedup.process('a', () => 'again'), { result: 'again', duplicate: false })
  // With nothing but effects that run there is nothing to forget.
  const busy = new ReceiveDedup<string>({ nowMs: () => 0, mostKeys: 1, onEvict })
  void busy.process('hangs', () => new Promise(() => {}))
  await assert.rejects(
    busy.process('another', () => ''),
    (error) => isOnceError(error, 'dedup_full'),
  )
})
