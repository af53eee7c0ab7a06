import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLines } from './lines.ts'

const quiet = () => new AbortController().signal

test('branches count in place of the line that waits for them, until it continues', () => {
  const lines = createLines()
  assert.equal(lines.count(), 1)
  const fork = lines.fork(3, quiet())
  assert.equal(lines.count(), 3)
  fork.ended()
  assert.equal(lines.count(), 2)
  const inner = lines.fork(2, quiet())
  assert.equal(lines.count(), 3)
  inner.ended()
  inner.ended()
  inner.join()
  assert.equal(lines.count(), 2)
  fork.ended()
  fork.ended()
  fork.join()
  assert.equal(lines.count(), 1)
})

test('a branch that has not ended when the line continues no longer counts, however late it ends', () => {
  const lines = createLines()
  const race = lines.fork(3, quiet())
  race.ended()
  race.join()
  assert.equal(lines.count(), 1)
  race.ended()
  race.ended()
  race.join()
  assert.equal(lines.count(), 1)
})

test('branches below one that lost its race go with it', () => {
  const lines = createLines()
  const losing = new AbortController()
  const race = lines.fork(2, quiet())
  const below = lines.fork(5, losing.signal)
  assert.equal(lines.count(), 6)
  race.ended()
  losing.abort()
  race.join()
  assert.equal(lines.count(), 1)
  below.ended()
  below.join()
  assert.equal(lines.count(), 1)
})
