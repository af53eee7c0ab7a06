import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY } from '../ledger/core/limits.ts'
import { createLedger } from '../ledger/ledger.ts'
import { memoryStore } from '../ledger/stores/memory/index.ts'
import { createFakeClock } from './fake-clock.ts'

test('timers fire in order of their time, also those that a timer sets', () => {
  const clock = createFakeClock()
  const fired: string[] = []
  clock.setTimer(30, () => fired.push('late'))
  clock.setTimer(10, () => {
    fired.push(`first at ${clock.monotonicMs()}`)
    clock.setTimer(10, () => fired.push('set by the first'))
  })
  clock.setTimer(15, () => fired.push('cancelled')).cancel()
  clock.advance(9)
  assert.deepEqual(fired, [])
  clock.advance(21)
  assert.deepEqual(fired, ['first at 10', 'set by the first', 'late'])
  assert.equal(clock.monotonicMs(), 30)
})

test('a wall clock that jumps does not move the time of a store', async () => {
  const clock = createFakeClock(1_000_000)
  const store = memoryStore({ clock })
  clock.advance(5)
  clock.jump(-3_600_000)
  assert.equal(clock.wallMs(), 1_000_005 - 3_600_000)
  assert.equal(await store.clock.now({ timeoutMs: 10 }), 1_000_005)
})

test('a ledger on the clock forgets when the store does', async () => {
  const clock = createFakeClock()
  const once = createLedger({ store: memoryStore({ clock }), runtime: clock.runtime, background: false })
  const count = once.operation({ name: 'count', effect: 'external', retainMs: 7 * DAY })
  let counted = 0
  const run = () => count.run({ tenant: 't', caller: 'c', key: 'k' }, null, () => ++counted)
  assert.equal(await run(), 1)
  clock.advance(6 * DAY)
  // A replay that the process remembers for a second must not outlive a day of this clock.
  assert.equal(await run(), 1)
  clock.advance(2 * DAY)
  assert.equal(await run(), 2)
  await once.stop()
})
