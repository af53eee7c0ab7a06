import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError, OnceError } from '../core/errors.ts'
import { createBounded } from './bounded.ts'

const MANY = 20
const DEADLINE_MS = 500

test('calls that a store refuses for what they are do not count as a store that is away', async () => {
  const bounded = createBounded(DEADLINE_MS)
  const call = (work: () => Promise<string>) => bounded.call(work, () => {}, 0)
  for (let count = 0; count < MANY; count++) {
    const refused = call(() => Promise.reject(new OnceError('bad_input', 'The key is too long.')))
    await assert.rejects(refused, (error) => isOnceError(error, 'bad_input'))
  }
  assert.equal(await call(async () => 'asked'), 'asked')
  for (let count = 0; count < MANY; count++) {
    await assert.rejects(call(() => Promise.reject(new OnceError('store_busy', 'Later.'))))
  }
  const open = call(async () => assert.fail('it was asked'))
  await assert.rejects(open, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no')
})
