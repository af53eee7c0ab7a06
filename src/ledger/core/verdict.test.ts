import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from './limits.ts'
import { failureOf, final, isVerdict, notDone, released, singleCall } from './verdict.ts'

test('a verdict is recognised by its mark, also one of another copy of the package', () => {
  assert.ok(isVerdict(final(new Error('no'))))
  assert.ok(isVerdict(notDone('x')))
  assert.ok(isVerdict(released(null)))
  assert.ok(isVerdict({ verdict: 'final', [Symbol.for('onceonly.verdict')]: true }))
  for (const thrown of [new Error('x'), 'final', null, undefined, { verdict: 'final' }])
    assert.equal(isVerdict(thrown), false)
})

test('a verdict is an error with its reason as the cause, so that it may be thrown anywhere', () => {
  const reason = new Error('no connection')
  const verdict = notDone(reason, { retryAfterMs: 5 })
  assert.ok(verdict instanceof Error)
  assert.deepEqual(
    [verdict.verdict, verdict.error, verdict.cause, verdict.retryAfterMs],
    ['not_done', reason, reason, 5],
  )
  assert.equal(verdict.message, 'no connection')
  assert.equal(notDone('x').retryAfterMs, null)
  assert.equal(final('x', { answer: 7 }).answer, 7)
  assert.equal(final('x').answer, undefined)
})

test('a failure keeps what answers a retry, cut to its limit', () => {
  const error = Object.assign(new TypeError('m'.repeat(5_000)), { code: 42, data: { field: 'x' }, secret: 'hidden' })
  const failure = failureOf(error)
  assert.equal(failure.name, 'TypeError')
  assert.equal(failure.message.length, limits.failureMessageChars)
  assert.equal(failure.code, '42')
  assert.deepEqual(failure.data, { field: 'x' })
  assert.equal('secret' in failure, false)
})

test('whatever is thrown has a failure', () => {
  for (const thrown of [
    'text',
    7,
    null,
    undefined,
    Symbol('s'),
    1n,
    {},
    Object.create(null) as object,
    { message: null },
  ]) {
    const { name, message } = failureOf(thrown)
    assert.equal(typeof name, 'string')
    assert.equal(typeof message, 'string')
  }
})

const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })

test('only what proves that nothing was sent is "not done"', () => {
  assert.equal(singleCall(refused), 'not_done')
  assert.equal(singleCall(new TypeError('fetch failed', { cause: refused })), 'not_done')
  assert.equal(singleCall(Object.assign(new Error('dns'), { code: 'ENOTFOUND' })), 'not_done')
  assert.equal(singleCall(Object.assign(new Error('tls'), { code: 'CERT_HAS_EXPIRED' })), 'not_done')
  for (const thrown of [
    reset,
    new Error('time-out'),
    new Error('x', { cause: reset }),
    'ECONNREFUSED',
    null,
    undefined,
  ]) {
    assert.equal(singleCall(thrown), 'ambiguous')
  }
})

test('of several addresses none may have been reached', () => {
  assert.equal(singleCall(new AggregateError([refused, refused])), 'not_done')
  assert.equal(singleCall(new AggregateError([refused, reset])), 'ambiguous')
  assert.equal(singleCall(new AggregateError([])), 'ambiguous')
})

test('a chain of causes without an end is followed for a while only', () => {
  const circle = new Error('circle')
  circle.cause = circle
  assert.equal(singleCall(circle), 'ambiguous')
})
