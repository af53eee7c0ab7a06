import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { CausalBuffer } from './causal.ts'
import { ReceiveDedup } from './dedup.ts'

const badInput = (error: unknown) => isOnceError(error, 'bad_input')
const badOption = (error: unknown) => isOnceError(error, 'bad_option')

test('a copy that comes while its first is being run, in the same turn, shares that run', async () => {
  const dedup = new ReceiveDedup<number>({ nowMs: () => 0 })
  const copies: Promise<unknown>[] = []
  let runs = 0
  const effect = () => {
    runs += 1
    if (runs === 1) copies.push(dedup.process('key', effect))
    return runs
  }
  assert.deepEqual(await dedup.process('key', effect), { result: 1, duplicate: false })
  assert.deepEqual(await Promise.all(copies), [{ result: 1, duplicate: true }])
  assert.equal(runs, 1)
})

test('an effect that throws at once is forgotten, and a copy of it fails with it', async () => {
  const dedup = new ReceiveDedup<number>({ nowMs: () => 0 })
  const copies: Promise<unknown>[] = []
  const broken = dedup.process('key', () => {
    copies.push(dedup.process('key', () => 2))
    throw new Error('broken')
  })
  await assert.rejects(broken, /broken/)
  await assert.rejects(Promise.all(copies), /broken/)
  assert.deepEqual(await dedup.process('key', () => 3), { result: 3, duplicate: false })
})

test('keys expire in their time, also where the clock was set back', async () => {
  let nowMs = 1_000_000
  const dedup = new ReceiveDedup<number>({ nowMs: () => nowMs, ttlMs: 1_000, mostKeys: 4 })
  await dedup.process('before', () => 1)
  nowMs = 0
  for (const key of ['a', 'b', 'c']) await dedup.process(key, () => 1)
  assert.equal((await dedup.process('before', () => 2)).duplicate, true)
  nowMs = 999
  await assert.rejects(
    dedup.process('d', () => 1),
    (error) => isOnceError(error, 'dedup_full'),
  )
  nowMs = 1_000
  assert.equal((await dedup.process('d', () => 1)).duplicate, false)
})

test('a bound that is no number is refused: nothing would be bounded by it', () => {
  for (const odd of [Number.NaN, 0, -1]) {
    assert.throws(() => new ReceiveDedup({ nowMs: () => 0, ttlMs: odd }), badOption)
    assert.throws(() => new ReceiveDedup({ nowMs: () => 0, mostKeys: odd }), badOption)
  }
})

test('a cause that is no count is refused, and never taken for one that is here', () => {
  for (const odd of [Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, 2 ** 60, '5', null]) {
    const buffer = new CausalBuffer<string>()
    assert.throws(() => buffer.receive({ sender: 'a', clock: { a: 1, b: odd as number }, message: 'x' }), badInput)
    assert.deepEqual([buffer.buffered, buffer.delivered], [0, {}])
  }
})

test('a size that is no number is refused: the sum of sizes would bound nothing any more', () => {
  const buffer = new CausalBuffer<string>({ mostBufferedBytes: 10, sizeOf: () => Number.NaN })
  assert.throws(() => buffer.receive({ sender: 'a', clock: { a: 2 }, message: 'x' }), badInput)
  assert.deepEqual([buffer.buffered, buffer.bufferedBytes], [0, 0])
})
