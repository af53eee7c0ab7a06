import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { differences, isIgnored, longestRising } from './diff.ts'

test('equal values have no differences, whatever the order of their members', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const copy = JSON.parse(JSON.stringify(value)) as unknown
      assert.deepEqual(differences(JSON.parse(JSON.stringify(value)), copy), [])
    }),
  )
  assert.deepEqual(differences({ a: 1, b: 2 }, { b: 2, a: 1 }), [])
  assert.deepEqual(differences(new Date(5), new Date(5)), [])
  assert.deepEqual(differences(new Uint8Array([1]), new Uint8Array([1])), [])
})

test('a difference is named by its place', () => {
  const original = { to: [{ name: 'Ann' }, { name: 'Bob' }], at: new Date(5), n: 1n }
  const replayed = { to: [{ name: 'Ann' }, { name: 'Eve' }], at: new Date(6), n: 1n, more: true }
  assert.deepEqual(
    differences(original, replayed).map(({ path }) => path),
    ['$.to[1].name', '$.at', '$.more'],
  )
  assert.deepEqual(differences([1], { 0: 1 }), [{ path: '$', original: [1], replayed: { 0: 1 } }])
  assert.deepEqual(differences(new Uint8Array([1]), new Uint8Array([2])).length, 1)
  assert.deepEqual(differences(0, -0).length, 1)
})

test('a value that differs everywhere has a bounded diff', () => {
  assert.equal(
    differences(
      Array.from({ length: 5_000 }, () => 1),
      Array.from({ length: 5_000 }, () => 2),
    ).length,
    100,
  )
})

test('declared places, and what is below them, may differ', () => {
  assert.ok(isIgnored('$.headers.date', ['$.headers.date']))
  assert.ok(isIgnored('$.headers.date[0]', ['$.headers.date']))
  assert.ok(!isIgnored('$.headers.dates', ['$.headers.date']))
  assert.ok(isIgnored('$.to[3].id', ['$.to[*].id']))
  assert.ok(!isIgnored('$.to[3].name.id', ['$.to[*].id']))
  assert.ok(isIgnored('$.a.b[1].id', ['$.**.id']))
  assert.ok(!isIgnored('$xheaders', ['$.headers']))
})

test('the longest rising part leaves out as few as it can', () => {
  const rising = (list: readonly number[]) => longestRising(list, (value) => value)
  assert.deepEqual(rising([]), [])
  assert.deepEqual(rising([1, 2, 3]), [1, 2, 3])
  assert.deepEqual(rising([3, 0, 1, 2]), [0, 1, 2])
  assert.deepEqual(rising([1, 2, 0, 3]), [1, 2, 3])
  assert.equal(rising([5, 4, 3]).length, 1)
  assert.deepEqual(rising([0, 4, 1, 5, 2, 6, 3]), [0, 1, 2, 3])
})
