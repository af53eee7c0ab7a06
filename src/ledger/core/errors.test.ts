import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError, OnceError } from './errors.ts'

test('a single error may know better than its table', () => {
  const cause = new Error('why')
  const error = new OnceError('store_unavailable', 'x', { applied: 'no', retryAfterMs: 5, details: { a: 1 }, cause })
  assert.deepEqual([error.applied, error.retryAfterMs, error.details, error.cause], ['no', 5, { a: 1 }, cause])
  assert.equal('cause' in new OnceError('stopped', 'x'), false)
})

test('errors are known by shape, also those of another copy of the package', () => {
  const error = new OnceError('stopped', 'x')
  assert.ok(isOnceError(error) && isOnceError(error, 'stopped') && !isOnceError(error, 'not_found'))
  const foreign = { code: 'stopped', [Symbol.for('onceonly.error')]: true }
  assert.ok(isOnceError(foreign, 'stopped'))
  for (const thrown of [new Error('x'), { code: 'stopped' }, null, undefined, 'stopped']) {
    assert.equal(isOnceError(thrown), false)
  }
})
