import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../ledger/core/limits.ts'
import type { AttemptFailure } from './entry.ts'
import { allDefinite, ambiguousSince, keyAfter, remembered, withFailure, withUnseen } from './failures.ts'
import { derivedKey } from './key.ts'

/** `d` for a definite failure, `a` for an ambiguous one; each began at the time of its number. */
function failures(kinds: string): readonly AttemptFailure[] {
  return kinds.split('').reduce<readonly AttemptFailure[]>((list, kind, index) => {
    const at = index + 1
    return withFailure(list, { name: 'Error', message: kind, attempt: at, at, definite: kind === 'd' })
  }, [])
}

test('a definite failure takes a new key, and while an ambiguous one is open its key stays', () => {
  const attempt = (number: number) => derivedKey('k', `attempt-${number}`)
  for (const [kinds, key] of [
    ['', 'k'],
    ['d', attempt(1)],
    ['dd', attempt(2)],
    ['a', 'k'],
    ['ad', 'k'],
    ['aadd', 'k'],
    ['da', attempt(1)],
    ['ddadad', attempt(2)],
  ] as const) {
    assert.equal(keyAfter('k', failures(kinds)), key, kinds)
  }
  assert.equal(keyAfter('k', allDefinite(failures('dad'))), attempt(3))
})

test('what a dead worker may have sent is ambiguous since then, and keeps its key', () => {
  const list = withUnseen(failures('d'), 7, 2)
  assert.equal(ambiguousSince(withFailure(list, { ...failures('d')[0], at: 9 } as AttemptFailure)), 7)
  assert.equal(keyAfter('k', list), keyAfter('k', failures('d')))
  assert.deepEqual(withUnseen(failures('d'), null, 2), failures('d'))
})

test('however many failures there are, the time and the key of the first ambiguous one are remembered', () => {
  for (const before of ['', 'd', 'ddd', 'd'.repeat(50)]) {
    for (const after of ['', 'd', 'da', 'd'.repeat(50), 'a'.repeat(50), 'da'.repeat(50)]) {
      let kept: readonly AttemptFailure[] = []
      const whole = failures(`${before}a${after}`)
      // As a step does it: one after the other, over what is remembered.
      for (const { number, ...failure } of whole) {
        kept = remembered(withFailure(kept, failure))
        assert.equal(kept.at(-1)?.number, number)
      }
      assert.ok(kept.length <= limits.runFailures)
      assert.equal(ambiguousSince(kept), ambiguousSince(whole))
      assert.equal(keyAfter('k', kept), keyAfter('k', whole))
    }
  }
})

test('definite failures take a new key each, also beyond those that are remembered', () => {
  let kept: readonly AttemptFailure[] = []
  const keys = new Set<string>()
  for (const { number: _, ...failure } of failures('d'.repeat(3 * limits.runFailures))) {
    kept = remembered(withFailure(kept, failure))
    keys.add(keyAfter('k', kept))
  }
  assert.equal(keys.size, 3 * limits.runFailures)
  assert.equal(kept[0]?.number, 1)
})
