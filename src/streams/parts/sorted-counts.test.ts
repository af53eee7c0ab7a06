import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SortedCounts } from './sorted-counts.ts'
import { compareCounts, VectorClock } from './vector.ts'

const names = ['a', 'b', 'c', 'constructor', '__proto__', '10', '9']
const counts = fc
  .array(fc.tuple(fc.constantFrom(...names), fc.nat(2)), { maxLength: 7 })
  .map((pairs) => Object.fromEntries(pairs) as Record<string, number>)

test('sorted counts compare as counts do, whatever the order of the names', () => {
  fc.assert(
    fc.property(counts, counts, (a, b) => {
      assert.equal(new SortedCounts(a).compare(new SortedCounts(b)), compareCounts(a, b))
    }),
    { numRuns: 1_000 },
  )
})

test('a clock compares with counts, sorted counts and clocks alike, also after it moved', () => {
  const [ann, bob] = [new VectorClock('ann', { ann: 1 }), new VectorClock('bob')]
  assert.equal(ann.compare(bob), 'after')
  bob.receive(ann.send())
  assert.deepEqual([ann.compare(bob), ann.compare(bob.sorted), ann.compare(bob.counts)], ['before', 'before', 'before'])
  ann.tick()
  assert.deepEqual([ann.compare(bob), bob.compare(ann), ann.compare(ann)], ['concurrent', 'concurrent', 'equal'])
})
