import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../core/errors.ts'
import { pendingMigrations } from './migrations.ts'

const known = [
  { version: 1, oldestCode: 1 },
  { version: 2, oldestCode: 1 },
  { version: 3, oldestCode: 2 },
]

test('a fresh store gets every migration, a current one none', () => {
  assert.deepEqual(pendingMigrations('ledger', known, []), known)
  assert.deepEqual(pendingMigrations('ledger', known, known), [])
  assert.deepEqual(pendingMigrations('ledger', known, known.slice(0, 2)), [known[2]])
})

test('older code runs on a newer store that allows it, and refuses one that does not', () => {
  assert.deepEqual(pendingMigrations('ledger', known.slice(0, 2), known), [])
  assert.throws(
    () => pendingMigrations('ledger', known.slice(0, 1), known),
    (error) => isOnceError(error, 'schema_too_new') && error.details['oldestCode'] === 2,
  )
})

test('versions count from one without a gap', () => {
  assert.throws(
    () => pendingMigrations('ledger', [{ version: 2, oldestCode: 1 }], []),
    (error) => isOnceError(error, 'bad_option'),
  )
})
