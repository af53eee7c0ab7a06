import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ticksDue } from './ticks.ts'

const MINUTE = 60_000
const every =
  (ms: number) =>
  (after: number): number =>
    (Math.floor(after / ms) + 1) * ms

test('nothing is due before its time', () => {
  assert.deepEqual(ticksDue(every(MINUTE), 10 * MINUTE, 10 * MINUTE - 1, 'all'), [])
})

test('of many that were missed the last is handled, all of them in portions, or none', () => {
  const now = 1_000 * MINUTE + 30_000
  assert.deepEqual(ticksDue(every(MINUTE), MINUTE, now, 'last'), [1_000 * MINUTE])
  const all = ticksDue(every(MINUTE), MINUTE, now, 'all')
  assert.deepEqual([all.length, all[0], all.at(-1)], [100, MINUTE, 100 * MINUTE])
  assert.deepEqual(ticksDue(every(10 * MINUTE), 10 * MINUTE, now + 5 * MINUTE, 'none'), [])
  assert.deepEqual(ticksDue(every(MINUTE), 1_000 * MINUTE, now, 'none'), [1_000 * MINUTE])
})

test('the last of a year of seconds is found in a few looks', () => {
  let looks = 0
  const counted = (after: number) => {
    looks += 1
    return every(1_000)(after)
  }
  const year = 365 * 24 * 60 * MINUTE
  assert.deepEqual(ticksDue(counted, 1_000, year + 1, 'last'), [year])
  assert.ok(looks < 10, String(looks))
})
