import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBreaker } from './breaker.ts'

test('after five failures in a row nobody asks for five seconds, and then one, until it works', () => {
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
  assert.deepEqual([breaker.allows(), breaker.allows()], [true, false], 'one finds out for all')
  breaker.failed()
  now = 9_999
  assert.equal(breaker.allows(), false, 'one more failure is enough now')
  now = 10_000
  assert.equal(breaker.allows(), true)
  now = 15_000
  assert.equal(breaker.allows(), true, 'one who never told is not waited for')
  breaker.worked()
  fail(5)
})
