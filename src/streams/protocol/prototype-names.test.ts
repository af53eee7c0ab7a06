import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CausalBuffer } from '../parts/causal.ts'
import { compareCounts, toDense, VectorClock } from '../parts/vector.ts'
import { covers, furthest, missingFrom } from './position.ts'

/** What every object inherits. */
const inherited = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__']

describe('names that every object has are names like any other', () => {
  for (const name of inherited) {
    const two = Object.fromEntries([[name, 2]])

    test(`${name}: clocks`, () => {
      assert.deepEqual(
        [compareCounts(two, {}), compareCounts({}, two), compareCounts(two, two)],
        ['after', 'before', 'equal'],
      )
      assert.deepEqual(toDense([name, 'ann'], {}), [0, 0])
      const clock = new VectorClock('ann')
      clock.receive(two)
      assert.deepEqual([clock.count(name), clock.compare(two)], [2, 'after'])
    })

    test(`${name}: positions`, () => {
      assert.equal(covers({}, two), false)
      assert.equal(covers(two, two), true)
      assert.equal(furthest(two, {})[name], 2)
      if (name !== '__proto__') assert.deepEqual(missingFrom({}, two), two)
    })

    test(`${name}: causes`, () => {
      const buffer = new CausalBuffer<string>()
      const effect = { sender: 'ann', clock: { ann: 1, ...two }, message: 'effect' }
      const arrival = buffer.receive(effect as never)
      assert.equal(arrival.kind, 'buffered')
      assert.deepEqual(buffer.missing, two)
    })
  }
})
