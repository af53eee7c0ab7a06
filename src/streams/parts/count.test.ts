import assert from 'node:assert/strict'
import { test } from 'node:test'
import { safeCount } from './count.ts'

test('what is no count is refused, with advice that fits a stream', () => {
  assert.equal(safeCount('number', 3), 3)
  for (const value of [-1, 1.5, Number.NaN]) {
    assert.throws(() => safeCount('number', value), {
      message: `The number ${value} is not a whole number from 0 on.`,
    })
  }
})
