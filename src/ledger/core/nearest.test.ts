import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestName, unknownOption } from './nearest.ts'

const known = ['name', 'effect', 'retainMs', 'leaseMs', 'whileRunning']

test('the nearest name is the one with the fewest changed letters, and none where all are far', () => {
  assert.equal(nearestName('efect', known), 'effect')
  assert.equal(nearestName('retianMs', known), 'retainMs')
  assert.equal(nearestName('leasems', known), 'leaseMs')
  assert.equal(nearestName('whilstRunning', known), 'whileRunning')
  assert.equal(nearestName('while', known), 'whileRunning')
  for (const far of ['ttl', 'x', 'timeout', 'retries', 'n'.repeat(65)]) assert.equal(nearestName(far, known), null, far)
})

test('an unknown option is named with advice; known ones are accepted', () => {
  assert.equal(unknownOption({ name: 'a', effect: 'external' }, known), null)
  assert.deepEqual(unknownOption({ name: 'a', retain: 1 }, known)?.name, 'retain')
  assert.equal(unknownOption({ retainMS: 1 }, known)?.advice, 'Did you mean `retainMs`?')
  assert.equal(
    unknownOption({ ttl: 1 }, known)?.advice,
    'Known options: name, effect, retainMs, leaseMs, whileRunning.',
  )
  assert.equal(unknownOption({ ttl: 1 }, known, { ttl: 'retainMs' })?.advice, 'Did you mean `retainMs`?')
})
