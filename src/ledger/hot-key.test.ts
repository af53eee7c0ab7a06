import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { isOnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import { createLedger } from './ledger.ts'
import { memoryStore } from './stores/memory/index.ts'

test('a hot key is answered from memory, and read once a second', async () => {
  let aheadMs = 0
  const real = createRuntime()
  const runtime: Runtime = { ...real, monotonicMs: () => real.monotonicMs() + aheadMs }
  const store = memoryStore()
  let asked = 0
  const { claims } = store
  const counting: typeof store = {
    ...store,
    claims: {
      ...claims,
      apply: (...given) => {
        asked += 1
        return claims.apply(...given)
      },
      read: (...given) => {
        asked += 1
        return claims.read(...given)
      },
    },
  }
  await using once = createLedger({ store: counting, background: false, runtime })
  const pay = once.operation({ name: 'pay', effect: 'repeatable' })
  const again = () => pay.run({ tenant: 't', caller: 'c', key: 'k' }, 1, () => 'paid')
  await again()
  await again()
  const before = asked
  for (let times = 0; times < 100; times++) assert.equal(await again(), 'paid')
  // A machine that stalls for a second in the middle reads once more.
  assert.ok(asked - before <= 5, `${asked - before} calls of the store for 100 repeats`)
  const cached = asked
  aheadMs += limits.replayCacheMs
  await again()
  assert.equal(asked, cached + 1)
})

test('another payload under a hot key is refused from memory', async () => {
  await using once = createLedger({ store: memoryStore(), background: false })
  const pay = once.operation<number>({ name: 'pay', effect: 'repeatable' })
  const identity = { tenant: 't', caller: 'c', key: 'k' }
  for (let times = 0; times < 3; times++) assert.equal(await pay.run(identity, 1, () => 'paid'), 'paid')
  await assert.rejects(
    pay.run(identity, 2, () => 'paid again'),
    (error) => isOnceError(error, 'key_reused'),
  )
})
