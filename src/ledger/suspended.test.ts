import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createRuntime } from '../runtime/runtime.ts'
import { isOnceError } from './core/errors.ts'
import { MINUTE, SECOND } from './core/limits.ts'
import type { EffectContext } from './effect-context.ts'
import { createLedger } from './ledger.ts'
import { memoryStore } from './stores/memory/index.ts'

const who = { tenant: 'acme', caller: 'ann', key: 'k' }
const isOver = (error: unknown) => isOnceError(error, 'lease_over')

/** A machine whose wall clock the test moves: forward while the monotonic clock does not advance, as after a suspension. */
function scene(context: TestContext) {
  let offsetMs = 0
  const runtime = { ...createRuntime(), wallMs: () => Date.now() + offsetMs, upMs: () => performance.now() + offsetMs }
  const once = createLedger({ store: memoryStore(), runtime, background: false })
  context.after(() => once.stop())
  const pay = once.operation({ name: 'pay', effect: 'repeatable', leaseMs: 30 * SECOND })
  return { once, pay, move: (ms: number) => (offsetMs += ms) }
}

test('a machine that was suspended for longer than a lease does not believe in it', async (context) => {
  const { pay, move } = scene(context)
  const seen: EffectContext[] = []
  await pay
    .run(who, 1, (attempt) => {
      const { signal } = attempt
      seen.push(attempt)
      assert.ok(attempt.derive('step') !== '')
      move(10 * SECOND)
      assert.ok(attempt.derive('step') !== '', 'shorter than the lease')
      assert.ok(!attempt.signal.aborted)
      move(1 * MINUTE)
      assert.ok(attempt.signal.aborted, 'before any timer fires')
      assert.throws(() => attempt.derive('step'), isOver)
      assert.ok(signal.aborted)
      return 'paid'
    })
    .catch(() => {})
  assert.equal(seen.length, 1)
})

test('a claim that is held by hand, too; and what is claimed after it has its whole lease', async (context) => {
  const { pay, move } = scene(context)
  const first = await pay.claim(who, 1)
  assert.ok(first.kind === 'first_attempt')
  move(1 * MINUTE)
  assert.throws(() => first.lease.derive('step'), isOver)
  const second = await pay.claim({ ...who, key: 'other' }, 1)
  assert.ok(second.kind === 'first_attempt')
  move(29 * SECOND)
  assert.ok(second.lease.derive('step') !== '')
})

test('a wall clock that is set back changes nothing', async (context) => {
  const { pay, move } = scene(context)
  const value = await pay.run(who, 1, ({ effectKey }) => {
    move(-60 * MINUTE)
    return effectKey
  })
  assert.ok(value !== '')
})
