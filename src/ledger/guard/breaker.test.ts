import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBreaker } from './breaker.ts'

test('after five failures in a row the circuit is open for five seconds, then one call probes it', () => {
  let now = 0
  const breaker = createBreaker(() => now)
  const fail = (times: number) => {
    for (let at = 0; at < times; at++) {
      assert.equal(breaker.allows(), true)
      breaker.failed()
    }
  }
  fail(4)
  breaker.worked()
  fail(5)
  assert.equal(breaker.allows(), false)
  now = 4_999
  assert.equal(breaker.allows(), false)
  now = 5_000
  assert.deepEqual([breaker.allows(), breaker.allows()], [true, false], 'one call probes for all')
  breaker.failed()
  now = 9_999
  assert.equal(breaker.allows(), false, 'one more failure is enough now')
  now = 10_000
  assert.equal(breaker.allows(), true)
  now = 15_000
  assert.equal(breaker.allows(), true, 'a probe without a result is not waited for')
  breaker.worked()
  fail(5)
})
