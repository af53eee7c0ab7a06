import assert from 'node:assert/strict'
import { test } from 'node:test'
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
