import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { isOnceError } from './core/errors.ts'
import { createLedger } from './ledger.ts'
import { memoryStore } from './stores/memory/index.ts'

test('replays count for the limit of a key, and are answered again when its time is over', async () => {
  let aheadMs = 0
  const real = createRuntime()
  const runtime: Runtime = { ...real, monotonicMs: () => real.monotonicMs() + aheadMs }
  await using once = createLedger({ store: memoryStore(), background: false, runtime })
  const perMs = 60_000
  const pay = once.operation({ name: 'pay', effect: 'external', perKeyLimit: { attempts: 3, perMs } })
  const again = () => pay.run({ tenant: 't', caller: 'c', key: 'k' }, 1, () => 'paid')
  for (const _attempt of [1, 2, 3]) assert.equal(await again(), 'paid')
  for (const _attempt of [4, 5]) {
    await assert.rejects(again(), (error) => {
      assert.ok(isOnceError(error, 'too_many_attempts') && error.retryable && error.applied === 'no')
      return error.retryAfterMs !== null && error.retryAfterMs <= perMs
    })
  }
  aheadMs += perMs
  // A refused attempt has changed nothing: the key still has its answer.
  assert.equal(await again(), 'paid')
})
