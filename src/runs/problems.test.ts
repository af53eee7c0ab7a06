import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endedLongAgo, noSuchRun, notResolvable, stillRunning } from './problems.ts'

test('errors about runs say what to do with a run, and nothing of records or ledgers', () => {
  const errors = [noSuchRun('r1'), endedLongAgo('r1'), stillRunning('r1', 'parked'), notResolvable('r1 is done.')]
  for (const { message, next } of errors) {
    assert.match(message, /r1/)
    assert.ok(message.endsWith(next))
    assert.doesNotMatch(message, /tenant|caller|ledger|attempt/)
  }
})
