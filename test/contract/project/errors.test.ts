import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorRow } from 'onceonly/errors'
import { errorTables, isOnceError, OnceError } from 'onceonly/errors'

const rows = Object.entries(errorTables).flatMap(([wing, table]) =>
  Object.entries<ErrorRow>(table).map(([code, row]) => ({ wing, code, row })),
)

test('every code says what happened and what to do next', () => {
  for (const { code, row } of rows) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/)
    assert.match(row.next, /^[A-Z].*\.$/, code)
    const error = new OnceError(code, 'It happened.', {}, row)
    assert.equal(error.message, row.inMessage === false ? 'It happened.' : `It happened. ${row.next}`)
    assert.equal(error.next, row.next)
    assert.deepEqual([error.code, error.retryable, error.applied], [code, row.retryable, row.applied])
    assert.ok(isOnceError(error))
  }
})

test('what may have happened is called safe to repeat only where the repetition is recognised', () => {
  // A claim is repeated under its claim id, a request of the client under its key.
  const both = rows.filter(({ row }) => row.retryable && row.applied === 'maybe')
  assert.deepEqual(
    both.map(({ code }) => code),
    ['store_unavailable', 'no_answer'],
  )
})

test('a code of two wings means the same in both; only the advice differs', () => {
  for (const [code, same] of Map.groupBy(rows, (each) => each.code)) {
    const meanings = new Set(same.map(({ row: { retryable, applied } }) => `${retryable} ${applied}`))
    assert.equal(meanings.size, 1, code)
  }
})
