import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNonces } from './nonces.ts'

test('a number is taken once for as long as its token is good, and forgotten later', () => {
  const nonces = createNonces(1_000)
  assert.deepEqual([nonces.take('a', 0), nonces.take('a', 0), nonces.take('a', 999)], [true, false, false])
  assert.equal(nonces.take('b', 1_500), true)
  assert.equal(nonces.take('a', 1_500), false, 'kept for longer rather than shorter')
  assert.equal(nonces.take('c', 3_000), true)
  assert.equal(nonces.take('a', 4_500), true)
})
