import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeValue, encodeValue } from './codec.ts'
import { jsonText } from './json-text.ts'

test('every value that can be stored has a text in JSON', () => {
  const stored = {
    big: 2n ** 64n,
    bytes: new Uint8Array([1, 2, 255]),
    buffer: Buffer.from('text'),
    map: new Map([['a', 1n]]),
    set: new Set([1n]),
    date: new Date(0),
    list: [undefined, Number.NaN, null],
  }
  const encoded = encodeValue(stored)
  if ('problem' in encoded) return assert.fail(encoded.problem)
  assert.deepEqual(JSON.parse(jsonText(decodeValue(encoded.text))), {
    big: '18446744073709551616',
    bytes: 'AQL/',
    buffer: 'dGV4dA==',
    map: { a: '1' },
    set: ['1'],
    date: '1970-01-01T00:00:00.000Z',
    list: [null, null, null],
  })
})
