import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Counts } from './count.ts'
import { compareHybrid, HybridClock } from './hybrid.ts'
import { LamportClock } from './lamport.ts'
import { compareCounts, compareDense, decodeDense, encodeDense, toDense, toSparse, VectorClock } from './vector.ts'

const refused = (error: unknown) => isOnceError(error, 'bad_input')

test('Lamport: a node at 5 that receives 8 goes to 9', () => {
  const clock = new LamportClock(5)
  assert.equal(clock.receive(8), 9)
  assert.equal(clock.receive(2), 10)
  assert.equal(clock.send(), 11)
  for (const nonsense of [Number.NaN, -1, 1.5, 2 ** 53]) assert.throws(() => clock.receive(nonsense), refused)
  assert.equal(clock.time, 11)
})

test('vector clocks compare as the textbook says', () => {
  assert.equal(compareCounts({ A: 2, B: 3, C: 1 }, { A: 2, B: 4, C: 1 }), 'before')
  assert.equal(compareCounts({ A: 1, B: 2 }, { A: 2, B: 0 }), 'concurrent')
  assert.equal(compareCounts({ A: 1 }, { A: 1, B: 0 }), 'equal')
  assert.equal(compareCounts({ A: 1, B: 1 }, { A: 1 }), 'after')
  assert.equal(compareCounts({}, {}), 'equal')
})

test('a vector clock that receives takes the larger counts, and then ticks', () => {
  const clock = new VectorClock('A', { A: 2, B: 1 })
  assert.deepEqual(clock.receive({ B: 4, C: 1 }), { A: 3, B: 4, C: 1 })
  assert.deepEqual(clock.send(), { A: 4, B: 4, C: 1 })
  assert.throws(() => clock.receive({ B: -1 }), refused)
  assert.throws(() => clock.receive({ B: 0.5 }), refused)
  assert.deepEqual(clock.counts, { A: 4, B: 4, C: 1 })
})

const counts = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(4), { noNullPrototype: true })
/** By the definition, element by element. */
const seenAll = (a: Counts, b: Counts) => ['a', 'b', 'c', 'd'].every((node) => (a[node] ?? 0) <= (b[node] ?? 0))

test('both forms compare by the definition, and turned round the other way', () => {
  const nodes = ['a', 'b', 'c', 'd']
  const opposite = { before: 'after', after: 'before', equal: 'equal', concurrent: 'concurrent' } as const
  fc.assert(
    fc.property(counts, counts, (a, b) => {
      const expected = seenAll(a, b) ? (seenAll(b, a) ? 'equal' : 'before') : seenAll(b, a) ? 'after' : 'concurrent'
      assert.equal(compareCounts(a, b), expected)
      assert.equal(compareDense(toDense(nodes, a), toDense(nodes, b)), expected)
      assert.equal(compareCounts(b, a), opposite[expected])
    }),
  )
})

test('the encoding gives back what it was given, and refuses what is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.maxSafeNat(), { maxLength: 100 }), (dense) => {
      const bytes = encodeDense(dense)
      assert.deepEqual(decodeDense(bytes), dense)
      if (bytes.length > 1) assert.throws(() => decodeDense(bytes.subarray(0, -1)), refused)
      assert.throws(() => decodeDense(Uint8Array.from([...bytes, 0])), refused)
    }),
  )
  assert.equal(encodeDense([1, 2, 3, 4, 5]).length, 6)
  assert.throws(() => decodeDense(new Uint8Array(64).fill(0xff)), refused)
  assert.deepEqual(toSparse(['a', 'b'], [0, 2]), { b: 2 })
  assert.throws(() => toDense(['a'], { b: 1 }), refused)
})

test('a hybrid clock never goes back, and refuses a peer that is far ahead', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ wall: fc.nat(10_000), remote: fc.option(fc.nat(60_000)) })), (steps) => {
      let wall = 0
      const clock = new HybridClock(() => wall)
      let last = clock.last
      for (const step of steps) {
        wall = step.wall
        const remote = step.remote === null ? null : { ms: step.remote, counter: 3 }
        const next = remote === null ? clock.send() : clock.receive(remote)
        assert.ok(compareHybrid(next, last) > 0)
        if (remote !== null) assert.ok(compareHybrid(next, remote) > 0)
        last = next
      }
    }),
  )
  const clock = new HybridClock(() => 1_000)
  assert.throws(() => clock.receive({ ms: 3_601_000, counter: 0 }), refused)
  assert.deepEqual(clock.last, { ms: 0, counter: 0 })
})
