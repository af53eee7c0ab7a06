import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from './errors.ts'
import { checkOptionNames } from './option-names.ts'

const known = ['leaseMs', 'retentionMs', 'keep']

function messageOf(given: unknown): string {
  try {
    checkOptionNames('operation', given, known)
  } catch (error) {
    assert.ok(isOnceError(error, 'bad_option'))
    return error.message
  }
  return ''
}

test('known options pass, and none at all', () => {
  assert.equal(messageOf(undefined), '')
  assert.equal(messageOf({ leaseMs: 1, keep: true }), '')
})

test('an unknown option is refused with the nearest name, or with all of them', () => {
  assert.match(messageOf({ lease: 30 }), /operation has no option `lease`\. Did you mean `leaseMs`\?/)
  assert.match(messageOf({ retensionMs: 30 }), /Did you mean `retentionMs`\?/)
  assert.match(
    messageOf({ colour: 1 }),
    /operation has no option `colour`\. Known options: leaseMs, retentionMs, keep\./,
  )
})

test('options that are no object are refused', () => {
  assert.match(messageOf('fast'), /operation takes its options as an object, not as a string\./)
  assert.match(messageOf(null), /not as null\./)
  assert.match(messageOf([1]), /not as an array\./)
})
