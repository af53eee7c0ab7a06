import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rendezvous } from './rendezvous.ts'

const ids = Array.from({ length: 3_000 }, (_, at) => `id-${at}`)

test('the order of the names means nothing, and every name gets its share', () => {
  const counts = new Map<string, number>()
  for (const id of ids) {
    const home = rendezvous(['eu', 'us', 'ap'], id)
    assert.equal(rendezvous(['ap', 'eu', 'us'], id), home)
    counts.set(home, (counts.get(home) ?? 0) + 1)
  }
  for (const [name, count] of counts) assert.ok(count > 850 && count < 1_150, `${name} has ${count}`)
  assert.equal(counts.size, 3)
})

test('a name that goes moves only its own ids', () => {
  for (const id of ids) {
    const before = rendezvous(['eu', 'us', 'ap'], id)
    if (before !== 'ap') assert.equal(rendezvous(['eu', 'us'], id), before)
  }
})

test('without a name there is no home', () => {
  assert.throws(() => rendezvous([], 'id'), RangeError)
})
