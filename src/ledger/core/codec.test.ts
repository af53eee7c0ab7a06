import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeValue, encodeValue } from './codec.ts'
import { isOnceError } from './errors.ts'

function textOf(value: unknown): string {
  const encoded = encodeValue(value)
  assert.ok('text' in encoded, 'problem' in encoded ? encoded.problem : '')
  return encoded.text
}

function problemOf(value: unknown): string {
  const encoded = encodeValue(value)
  assert.ok('problem' in encoded, 'it was stored')
  return encoded.problem
}

test('plain JSON stays plain JSON', () => {
  const value = { a: [1, 'two', null, true, { b: {} }], c: '' }
  assert.equal(textOf(value), JSON.stringify(value))
})

test('an outcome without a value is short and comes back as undefined', () => {
  assert.equal(decodeValue(textOf(undefined)), undefined)
  assert.deepEqual(decodeValue(textOf([undefined, null])), [undefined, null])
})

test('what JSON cannot say comes back as it was', () => {
  const value = {
    at: new Date(1_700_000_000_123),
    never: new Date(Number.NaN),
    big: 2n ** 80n,
    bytes: new Uint8Array([0, 1, 255]),
    empty: new Uint8Array(),
    map: new Map<unknown, unknown>([[{ k: 1 }, new Set([1, 'a', null])]]),
    numbers: [Number.NaN, Infinity, -Infinity, -0],
  }
  assert.deepEqual(decodeValue(textOf(value)), value)
})

test('a value that looks like ours is not mistaken for it', () => {
  for (const value of [{ $once: 'date', is: 'x' }, { $once: { $once: 'bigint', is: '1' } }, { a: [{ $once: 1 }] }]) {
    assert.deepEqual(decodeValue(textOf(value)), value)
  }
})

test('members of any name survive', () => {
  const value = JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":2}') as object
  const back = decodeValue(textOf(value)) as Record<string, unknown>
  assert.deepEqual(Object.entries(back), Object.entries(value))
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
})

test('as in JSON: undefined members are left out, toJSON is asked', () => {
  assert.equal(textOf({ a: undefined, b: 1 }), '{"b":1}')
  assert.equal(textOf({ when: { toJSON: () => 'now' } }), '{"when":"now"}')
})

test('holes in an array are undefined, not null', () => {
  // oxlint-disable-next-line no-sparse-arrays
  assert.deepEqual(decodeValue(textOf([1, , 3])), [1, undefined, 3])
})

test('bytes of any length survive', () => {
  for (const length of [1, 3, 0x8000, 0x8001, 200_000]) {
    const bytes = new Uint8Array(length).map((_, index) => (index * 31) % 256)
    assert.deepEqual(decodeValue(textOf({ bytes })), { bytes })
  }
})

test('what cannot be stored is named with its place', () => {
  assert.match(problemOf({ a: [1, () => 1] }), /^\$\.a\[1\] is a function/)
  assert.match(problemOf({ s: Symbol('x') }), /^\$\.s is a symbol/)
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  assert.match(problemOf(circle), /nested too deeply or refers to itself/)
  const trap = Object.defineProperty({}, 'x', { enumerable: true, get: () => assert.fail('trapped') })
  assert.match(problemOf(trap), /trapped/)
})

test('a stored text that cannot be read is said to be so', () => {
  for (const text of ['', '{', '{"$once":"nonsense"}', '{"$once":"bigint","is":"x"}', '[['.repeat(50_000)]) {
    assert.throws(
      () => decodeValue(text),
      (error) => isOnceError(error, 'outcome_not_stored'),
    )
  }
})

test('random values come back equal', () => {
  const values = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: false,
  })
  fc.assert(
    fc.property(values, (value) => {
      const text = textOf(value)
      assert.equal(textOf(decodeValue(text)), text)
    }),
    { numRuns: 2_000 },
  )
})
