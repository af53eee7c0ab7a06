import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VectorClock } from './vector.ts'

test('a message that knew less takes nothing back', () => {
  const clock = new VectorClock('A', { A: 2, B: 4 })
  assert.deepEqual(clock.receive({ A: 1, B: 1 }), { A: 3, B: 4 })
})
