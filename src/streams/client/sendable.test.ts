import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalValue, MAX_JSON_DEPTH } from '../../ledger/core/canonical.ts'
import { hasFingerprint } from './sendable.ts'

/** As a region does, with the message that it replies to. */
function isTaken(body: unknown): boolean {
  try {
    canonicalValue([body, null])
    return true
  } catch {
    return false
  }
}

function nested(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels))
}

test('a message passes for one with a fingerprint exactly where a region takes one of it', () => {
  for (const levels of [1, MAX_JSON_DEPTH - 2, MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1]) {
    assert.equal(hasFingerprint(nested(levels), 1), isTaken(nested(levels)), String(levels))
  }
  const texts = fc.oneof(fc.string(), fc.constantFrom('\ud800', 'a\udc00b', '\ud83d\ude00'))
  const values = fc.anything({
    key: texts,
    values: [texts, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null)],
  })
  fc.assert(
    fc.property(values, (value) => {
      const text = JSON.stringify(value)
      fc.pre(text !== undefined)
      const body: unknown = JSON.parse(text)
      assert.equal(hasFingerprint(body, 1), isTaken(body))
    }),
  )
})
