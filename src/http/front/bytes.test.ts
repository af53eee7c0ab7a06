import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createByteBudget } from './bytes.ts'

test('one caller gets its share of the bytes, others find some, and all of it comes back', () => {
  const budget = createByteBudget({ totalBytes: 256, share: 0.25 })
  const flood = Array.from({ length: 100 }, () => budget.hold('flood'))
  const taken = flood.filter((hold) => hold.cover(1)).length
  assert.equal(taken, 64)
  const quiet = budget.hold('quiet')
  assert.ok(quiet.cover(20))
  for (const hold of [...flood, ...flood, quiet, quiet]) hold.release()
  assert.equal(budget.heldBytes, 0)
})

test('a hold grows to the requested size, never shrinks, and stays as it was when there is no room', () => {
  const budget = createByteBudget({ totalBytes: 100, share: 1 })
  const hold = budget.hold('a')
  assert.ok(hold.cover(40))
  assert.ok(hold.cover(10))
  assert.equal(budget.heldBytes, 40)
  assert.ok(hold.cover(100))
  assert.equal(hold.cover(101), false)
  assert.equal(budget.heldBytes, 100)
  assert.equal(budget.hold('b').cover(1), false)
  hold.release()
  assert.ok(hold.cover(1), 'it can be used again')
  hold.release()
  assert.equal(budget.heldBytes, 0)
})
