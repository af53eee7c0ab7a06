import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, locationOf } from './router.ts'

test('an address leads back to the parts that it was made of', () => {
  const parts = ['records', 'a/b', 'c d?#', 'é']
  const { pathname, search } = new URL(addressOf(parts, { key: 'x&y', empty: '' }), 'http://host')
  const location = locationOf(pathname, search)
  assert.deepEqual(location.parts, parts)
  assert.deepEqual([...location.query], [['key', 'x&y']])
})

test('a broken escape is a place where nothing is, not an error', () => {
  assert.deepEqual(locationOf('/console/records/%E0%A4', '').parts, ['records', '%E0%A4'])
})
