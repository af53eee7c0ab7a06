import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryLine } from './history.ts'
import { percentile, pointsOf } from './history-points.ts'

const MINUTE = 60_000
const now = 1_000 * MINUTE + 30_000
const bounds = [0.01, 0.1, 1]

function line(at: number, claims: number, buckets: readonly number[], pending = 0): HistoryLine {
  const count = buckets.reduce((sum, each) => sum + each, 0)
  return { at, counts: { claims }, latencies: { claim: { count, sumMs: count * 5, buckets } }, gauges: { pending } }
}

test('a range has all its points, and the lines of all processes are one', () => {
  const at = 999 * MINUTE
  const points = pointsOf([line(at, 60, [1, 0, 0, 0], 3), line(at, 120, [1, 0, 0, 0], 7)], now, '1h', bounds)
  assert.equal(points.length, 60)
  assert.equal(points.at(-1)?.at, 1_000 * MINUTE)
  const point = points.find((each) => each.at === at)
  assert.deepEqual(point?.perSecond, { claims: 3 })
  assert.deepEqual(point?.gauges, { pending: 7 })
  assert.equal(point?.latencyMs['claim']?.count, 2)
  assert.equal(point?.latencyMs['claim']?.mean, 5)
  assert.deepEqual(points[0], { at: 941 * MINUTE, perSecond: {}, latencyMs: {}, gauges: {} })
})

test('a longer range has wider points', () => {
  const lines = [990, 991, 999, 1_000].map((minute) => line(minute * MINUTE, 300, [1, 0, 0, 0]))
  const points = pointsOf(lines, now, '24h', bounds)
  assert.equal(points.length, 144)
  assert.equal(points.at(-2)?.perSecond['claims'], 900 / 600)
})

test('percentiles are found inside of their bucket; beyond the last bound only the bound is known', () => {
  assert.equal(percentile([100, 0, 0, 0], bounds, 0.5), 5)
  assert.equal(percentile([50, 50, 0, 0], bounds, 0.5), 10)
  assert.equal(percentile([0, 0, 0, 4], bounds, 0.99), 1_000)
  assert.equal(percentile([0, 0, 0, 0], bounds, 0.5), null)
})
