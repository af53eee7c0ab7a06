import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryPoint } from 'onceonly/admin'
import { recentNeeds } from './recent.ts'

type Given = Partial<Pick<HistoryPoint, 'perSecond' | 'gauges'>>

/** An hour, of which the last minutes are given. */
function hour(...last: readonly Given[]): readonly HistoryPoint[] {
  const quiet = Array.from({ length: 60 - last.length }, (): Given => ({}))
  return [...quiet, ...last].map((given, at) => ({
    at: at * 60_000,
    perSecond: {},
    latencyMs: {},
    gauges: {},
    ...given,
  }))
}

const cards = (points: readonly HistoryPoint[]) => recentNeeds(points).map(({ title, count }) => [title, count])

test('what happened once for good raises a card for an hour', () => {
  const once = { perSecond: { losses: 3 / 60, guardErrors: 1 / 60, sagaFailures: 2 / 60 } }
  const raised = [
    ['Records lost', 3],
    ['Sent without a lock', 1],
    ['Failed sagas', 2],
  ]
  assert.deepEqual(cards(hour(once)), raised)
  assert.deepEqual(cards(hour(once, ...Array.from({ length: 59 }, () => ({})))), raised)
  assert.deepEqual(cards([...hour(once), ...hour()].slice(-60)), [])
})

test('background work that failed once or twice raises no card, and what keeps failing does for a quarter of an hour', () => {
  const twice = { perSecond: { backgroundFailures: 2 / 60 } }
  const quiet = (minutes: number) => Array.from({ length: minutes }, () => ({}))
  assert.deepEqual(cards(hour(twice)), [])
  assert.deepEqual(cards(hour(twice, twice, ...quiet(13))), [['Background work fails', 4]])
  assert.deepEqual(cards(hour(twice, twice, ...quiet(14))), [])
})

test('what may be over raises a card above the bound of its alert, and for minutes only', () => {
  const often = { perSecond: { inProgress: 51 / 60 }, gauges: { keyReuseByOne: 21, pendingByOne: 22, linksCut: 4 } }
  const below = { perSecond: { inProgress: 50 / 60 }, gauges: { keyReuseByOne: 20, pendingByOne: 20, linksCut: 0 } }
  assert.deepEqual(cards(hour(often)), [
    ['Region links cut', 4],
    ['Keys used again', 21],
    ['Early retries', 51],
    ['Pending duplicates', 22],
  ])
  assert.deepEqual(cards(hour(below)), [])
  assert.deepEqual(cards(hour(often, {}, {}, {}, {}, {})), [])
  assert.deepEqual(cards([]), [])
})
