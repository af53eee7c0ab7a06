import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from './errors.ts'
import type { Identity } from './identity.ts'
import { checkIdentity, effectKeyOf, exceedsBytes, recordIdOf, sameIdentity } from './identity.ts'
import { limits } from './limits.ts'

const identity: Identity = { tenant: 'acme', caller: 'shop', operation: 'pay', key: 'k-1' }

function refusedPart(parts: object): unknown {
  try {
    checkIdentity({ ...identity, ...parts })
    return null
  } catch (error) {
    assert.ok(isOnceError(error, 'bad_identity'))
    return error.details['part']
  }
}

test('a good identity is accepted, with and without a batch', () => {
  checkIdentity(identity)
  checkIdentity({ ...identity, batch: 'b' })
  checkIdentity({ ...identity, key: '😀'.repeat(limits.identityPartBytes / 4) })
})

test('what could be stored differently than it was given is refused', () => {
  const bad = ['', '   ', '\t\n', 'nul\0', '\ud800', 'x\udc00y', 'x'.repeat(limits.identityPartBytes + 1), null, 7, {}]
  for (const name of ['tenant', 'caller', 'operation', 'key', 'batch']) {
    for (const part of bad) assert.equal(refusedPart({ [name]: part }), name, `${name}: ${String(part).slice(0, 20)}`)
  }
  for (const name of ['tenant', 'caller', 'operation', 'key']) assert.equal(refusedPart({ [name]: undefined }), name)
  assert.equal(refusedPart({ key: '€'.repeat(limits.identityPartBytes / 3 + 1) }), 'key')
})

/** Of every length in UTF-8, halves of pairs included. The library's own binary strings take seconds to begin. */
const codePoint = fc.oneof(fc.nat(0x7f), fc.nat(0x7ff), fc.nat(0xffff), fc.nat(0x10ffff))
const anyText = fc.array(codePoint, { maxLength: 40 }).map((points) => String.fromCodePoint(...points))

test('the length in bytes is the length of the UTF-8 form', () => {
  fc.assert(
    fc.property(anyText, fc.nat(120), (text, bytes) => {
      assert.equal(exceedsBytes(text, bytes), Buffer.byteLength(text) > bytes)
    }),
    { numRuns: 2_000 },
  )
})

const part = fc.oneof(fc.constantFrom('a', 'b', ':', '1:a', '-', '2:', 'a:b'), fc.string({ unit: 'grapheme' }))
const identities = fc.record(
  { tenant: part, caller: part, operation: part, key: part, batch: part },
  { requiredKeys: ['tenant', 'caller', 'operation', 'key'] },
) as fc.Arbitrary<Identity>

test('two identities share an id only when they are the same, whatever separators they hold', () => {
  fc.assert(
    fc.property(identities, identities, (a, b) => {
      assert.equal(recordIdOf(a) === recordIdOf(b), sameIdentity(a, b))
      assert.match(recordIdOf(a), /^[0-9a-f]{32}$/)
    }),
    { numRuns: 2_000 },
  )
})

test('parts never run into each other', () => {
  const moved = [
    { ...identity, tenant: 'acm', caller: 'eshop' },
    { ...identity, tenant: 'shop', caller: 'acme' },
    { ...identity, key: 'k-', batch: '1' },
    { ...identity, batch: '' },
    { ...identity, batch: '-' },
    { ...identity, batch: 'k-1' },
    { ...identity, operation: 'pa', key: 'yk-1' },
  ]
  const ids = [identity, ...moved].map(recordIdOf)
  assert.equal(new Set(ids).size, ids.length)
})

test('effect keys are equal for one incarnation, and different for every other, and for every step', () => {
  const id = recordIdOf(identity)
  assert.equal(effectKeyOf(id, 7), effectKeyOf(id, 7))
  const keys = [effectKeyOf(id, 7), effectKeyOf(id, 8), effectKeyOf(id, 7, 'bank'), effectKeyOf(id, 7, 'mail')]
  assert.equal(new Set([...keys, id]).size, keys.length + 1)
})
