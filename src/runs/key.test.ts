import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stepKey } from './key.ts'

test('the key of a step is the hash of its run, its name and its tick, in every release', () => {
  // SHA-256 of `5:run-1` `4:send` `1:0`: a step that was sent under this key must have the same key in newer code.
  assert.equal(stepKey('run-1', 'send', 0), '2a1b33a68e506dcf041211f6632bcbde870246cdd55edec040816c4fdbe76ab8')
  const keys = [stepKey('run-1', 'send', 0), stepKey('run-2', 'send', 0), stepKey('run-1', 'sent', 0)]
  assert.equal(new Set([...keys, stepKey('run-1', 'send', 1), stepKey('run-1s', 'end', 0)]).size, 5)
})
