import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { byTurns, compare } from './harness/compare.ts'
import type { Figures } from './harness/figures.ts'
import { drive } from './harness/load.ts'
import { isResult, readOptions } from './harness/options.ts'
import { jsonLine, table } from './harness/report.ts'
import { createRandom, estimate, median, quantile } from './harness/statistics.ts'

suite('statistics', () => {
  test('a median and a quantile lie between their neighbours', () => {
    assert.equal(median([3, 1, 2]), 2)
    assert.equal(median([4, 1, 2, 3]), 2.5)
    assert.equal(quantile(Float64Array.from([0, 10]), 0.99), 9.9)
    assert.throws(() => median([]))
  })

  test('the interval is the same in every run, holds the median, and covers the truth about as often as it says', () => {
    const random = createRandom(1)
    const runs = Array.from({ length: 40 }, () => Array.from({ length: 15 }, () => 10 + random() - 0.5))
    assert.deepEqual(estimate(runs[0] as number[]), estimate(runs[0] as number[]))
    const covered = runs.map(estimate).filter(({ low, median: middle, high }) => {
      assert.ok(low <= middle && middle <= high)
      return low <= 10 && 10 <= high
    })
    assert.ok(covered.length >= 36, `${covered.length} of 40`)
  })

  test('one round that was disturbed does not move the median', () => {
    assert.equal(estimate([2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0.01]).median, 2)
  })
})

suite('a comparison', () => {
  const comparing = (log: string[], ours: number[], other: number[]) => ({
    name: 'speed',
    pairs: ours.length,
    ours: 'ours',
    other: 'other',
    measure: byTurns(
      async () => logged(log, 'ours', ours.shift()),
      async () => logged(log, 'other', other.shift()),
    ),
  })
  const logged = (log: string[], who: string, perS: number | undefined): Figures => {
    log.push(who)
    return { perS: perS ?? Number.NaN }
  }

  test('alternates the order and divides pair by pair', async () => {
    const log: string[] = []
    const wanted = [{ figure: 'perS', label: 'per s', of: 'ratio', goal: { atLeast: 2 } }] as const
    // The machine became ten times slower after the first pair, for both.
    const [row] = await compare({ ...comparing(log, [300, 30, 30], [100, 10, 10]), wanted }, () => {})
    assert.deepEqual(log, ['ours', 'other', 'other', 'ours', 'ours', 'other'])
    assert.deepEqual(row?.estimate, { median: 3, low: 3, high: 3 })
    assert.equal(row?.pass, true)
  })

  test('is decided by the bound that is against us', async () => {
    const least = [{ figure: 'perS', label: 'per s', of: 'ratio', goal: { atLeast: 2 } }] as const
    const most = [{ figure: 'perS', label: 'per s', of: 'ours', goal: { atMost: 2 } }] as const
    const [low] = await compare({ ...comparing([], [1, 3, 3], [1, 1, 1]), wanted: least }, () => {})
    assert.equal(low?.estimate.median, 3)
    assert.equal(low?.pass, false)
    const [high] = await compare({ ...comparing([], [1, 1, 3], [1, 1, 1]), wanted: most }, () => {})
    assert.equal(high?.estimate.median, 1)
    assert.equal(high?.pass, false)
    assert.match(table([low, high] as never), /MISSED[\s\S]*MISSED/)
    const line = JSON.parse(jsonLine('speed', [low] as never, { isResult: true }))
    assert.deepEqual(line, {
      bench: 'speed',
      ratios: { 'speed: per s': 3 },
      bounds: { 'speed: per s': 1 },
      pass: false,
    })
  })
})

test('a load counts every request and measures those after the warm-up', async () => {
  const seen = new Set<number>()
  const { requests, figures } = await drive({
    callers: 4,
    warmUpMs: 20,
    measureMs: 50,
    request: async (number) => {
      seen.add(number)
      await new Promise((resolve) => void setTimeout(resolve, 1))
    },
  })
  assert.equal(seen.size, requests)
  assert.ok((figures['requestsPerS'] ?? 0) < requests / 0.05)
  assert.ok((figures['p99Ms'] ?? 0) >= (figures['p50Ms'] ?? 0))
})

test('options that cut the measurement short are known as such', () => {
  assert.equal(isResult(readOptions([])), true)
  for (const args of [
    ['--quick'],
    ['--pairs', '3'],
    ['--only=1 caller'],
    ['--records=1_000'],
    ['--profile'],
    ['--anatomy'],
  ])
    assert.equal(isResult(readOptions(args)), false)
  assert.throws(() => readOptions(['--pairs=none']))
  assert.throws(() => readOptions(['--against=HEAD']), /--anatomy/)
})
