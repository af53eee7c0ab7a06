import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { canonicalJson, canonicalValue } from './canonical.ts'
import {
  compareFingerprints,
  fingerprintBytes,
  fingerprintJsonBytes,
  fingerprintOf,
  fingerprintPrefix,
} from './digest.ts'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

suite('fingerprint', () => {
  test('the form is stored with records and must never change under one version', () => {
    assert.equal(fingerprintOf(canonicalValue({ b: 1, a: 'x' }), 3), 'v1:3:zasGfp876zLRJSz9Y-SSWS_sv1kbDQjK2yS7F_OGQkY')
    assert.equal(fingerprintOf('', 0), 'v1:0:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU')
  })

  test('bytes, text and value of one input have one fingerprint', () => {
    const text = ' {"ö" : [1.50, "😀", 9007199254740993], "a": {"d":1, "c":2e0} }'
    const expected = fingerprintOf(canonicalJson(text), 1)
    assert.equal(fingerprintJsonBytes(encode(text), 1), expected)
    assert.equal(fingerprintOf(canonicalValue({ a: { c: 2, d: 1 }, ö: [1.5, '😀', 9007199254740993n] }), 1), expected)
    assert.notEqual(fingerprintJsonBytes(encode(text), 2), expected)
  })

  test('bytes count with their content type, and never as JSON', () => {
    const bytes = encode('{"a":1}')
    const all = [
      fingerprintBytes(bytes, 'text/plain', 1),
      fingerprintBytes(bytes, 'text/html', 1),
      fingerprintBytes(bytes, '', 1),
      fingerprintBytes(bytes, null, 1),
      fingerprintBytes(encode('{"a":2}'), 'text/plain', 1),
      fingerprintJsonBytes(bytes, 1),
    ]
    assert.equal(new Set(all).size, all.length)
    assert.equal(fingerprintBytes(encode('{"a":1}'), 'text/plain', 1), all[0])
  })

  test('a shape is a whole number', () => {
    for (const shape of [-1, 0.5, NaN, Infinity, 2 ** 53]) assert.throws(() => fingerprintOf('1', shape), RangeError)
  })

  test('prefix', () => {
    assert.equal(fingerprintPrefix('v1:3:abc'), 'v1:3:')
    assert.equal(fingerprintPrefix('v12:30:'), 'v12:30:')
    for (const text of ['', 'v1', 'v1:3', 'abc:3:x', 'v1:x:y', ':3:x', 'v1::x', 'v1:3\n:x'])
      assert.equal(fingerprintPrefix(text), null)
  })

  test('comparison', () => {
    const [one, two] = [fingerprintOf('1', 1), fingerprintOf('2', 1)]
    const newer = fingerprintOf('1', 2)
    assert.equal(compareFingerprints(one, [one]), 'same')
    assert.equal(compareFingerprints(one, [newer, one]), 'same')
    assert.equal(compareFingerprints(one, [two]), 'different')
    assert.equal(compareFingerprints(one, [newer, two]), 'different')
    assert.equal(compareFingerprints(one, [newer]), 'unverified')
    assert.equal(compareFingerprints(one, []), 'unverified')
    assert.equal(compareFingerprints('v2:1:x', [one]), 'unverified')
    assert.equal(compareFingerprints(fingerprintOf('1', 11), [one]), 'unverified')
    assert.equal(compareFingerprints('from elsewhere', [one]), 'unverified')
  })
})
