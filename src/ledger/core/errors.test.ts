import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from './errors.ts'
import { errorTable, isOnceError, OnceError } from './errors.ts'

test('every code says what happened and what to do next', () => {
  for (const [code, row] of Object.entries(errorTable)) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/)
    assert.match(row.next, /^[A-Z].*\.$/, code)
    const error = new OnceError(code as ErrorCode, 'It happened.')
    const advised = !('inMessage' in row)
    assert.equal(error.message, advised ? `It happened. ${row.next}` : 'It happened.')
    assert.equal(error.next, row.next)
    assert.deepEqual([error.code, error.retryable, error.applied], [code, row.retryable, row.applied])
  }
})

test('what may have happened is called safe to repeat only where the repetition is recognised', () => {
  // A claim is repeated under its claim id, a request of the client under its key.
  const both = Object.entries(errorTable).filter(([, row]) => row.retryable && row.applied === 'maybe')
  assert.deepEqual(
    both.map(([code]) => code),
    ['store_unavailable', 'no_answer'],
  )
})

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
