import assert from 'node:assert/strict'
import { test } from 'node:test'
import { discover } from './discover.ts'
import { LONGEST, longestFirst } from './order.ts'

test('the longest files begin first, and every file runs once', () => {
  const files = [...discover('fast', []), ...discover('proof', [])]
  const ordered = longestFirst(files)
  assert.deepEqual(ordered.slice(0, LONGEST.length), LONGEST)
  assert.deepEqual(ordered.toSorted(), files.toSorted())
})

test('a run of a few files has only those', () => {
  assert.deepEqual(longestFirst(['test/a.test.ts', 'test/proof/races/races.test.ts']), [
    'test/proof/races/races.test.ts',
    'test/a.test.ts',
  ])
})
