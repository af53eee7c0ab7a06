import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSnapshots } from './snapshots.ts'

test('a snapshot that is the same says that nothing was committed', () => {
  const { hasChanged } = createSnapshots()
  assert.equal(hasChanged('100:100:'), true, 'the first could not say')
  assert.equal(hasChanged('100:100:'), false)
  assert.equal(hasChanged('101:101:'), true)
  assert.equal(hasChanged('101:101:'), false)
})

test('a transaction that was under way counts when it ends', () => {
  const { hasChanged } = createSnapshots()
  hasChanged('100:103:100,102')
  assert.equal(hasChanged('100:103:100,102'), false)
  assert.equal(hasChanged('102:103:102'), true)
  assert.equal(hasChanged('103:103:'), true)
})

test('quiet transactions do not count, and hide no other', () => {
  const { hasChanged, quiet } = createSnapshots()
  hasChanged('100:100:')
  quiet('100')
  quiet('101')
  assert.equal(hasChanged('102:102:'), false)
  quiet('102')
  assert.equal(hasChanged('104:104:'), true, '103 is another')
  quiet('105')
  assert.equal(hasChanged('106:106:'), true, '104 is another')
  quiet('107')
  assert.equal(hasChanged('106:106:'), false)
  assert.equal(hasChanged('107:107:'), true, '106 is another, though there is as many as a quiet one')
  assert.equal(hasChanged('108:108:'), false)
})

test('a quiet transaction that becomes known late counts once, and hides none of the next', () => {
  const { hasChanged, quiet } = createSnapshots()
  hasChanged('100:100:')
  assert.equal(hasChanged('101:101:'), true)
  quiet('100')
  assert.equal(hasChanged('102:102:'), true)
})

test('beside a long transaction a quiet commit does not count either, and others do', () => {
  const { hasChanged, quiet } = createSnapshots()
  hasChanged('50:100:50')
  quiet('100')
  assert.equal(hasChanged('50:101:50'), false)
  assert.equal(hasChanged('50:102:50'), true)
  assert.equal(hasChanged('50:104:50,102'), true)
})
