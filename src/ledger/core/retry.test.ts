import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaults } from './limits.ts'
import { backoffMs, retryAfterMs } from './retry.ts'

const ALMOST_ONE = 1 - Number.EPSILON

test('waiting doubles from the base to the cap', () => {
  const full = [1, 2, 3, 4, 5, 6].map((tries) => backoffMs(tries, { baseMs: 100, capMs: 1_000 }, ALMOST_ONE))
  assert.deepEqual(full, [100, 200, 400, 800, 1_000, 1_000])
})

test('jitter spreads it over the upper half, so that retries do not come at once', () => {
  for (const tries of [0, 1, 5, 50, 1_000, Number.MAX_SAFE_INTEGER]) {
    const least = backoffMs(tries, { baseMs: 100, capMs: 60_000 }, 0)
    const most = backoffMs(tries, { baseMs: 100, capMs: 60_000 }, ALMOST_ONE)
    assert.ok(Number.isSafeInteger(least) && Number.isSafeInteger(most))
    assert.ok(least >= most / 2 && least > 0 && most <= 60_000, `${tries}: ${least} to ${most}`)
  }
})

test('the first retry comes at once, later ones ever more slowly', () => {
  assert.equal(retryAfterMs(1, 0.5), 0)
  assert.equal(retryAfterMs(2, ALMOST_ONE), defaults.retryBaseMs)
  assert.equal(retryAfterMs(3, ALMOST_ONE), 2 * defaults.retryBaseMs)
  assert.equal(retryAfterMs(1_000, ALMOST_ONE), defaults.retryCapMs)
})
