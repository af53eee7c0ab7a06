import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryPoint } from 'onceonly/admin'
import { growingBacklogs } from './backlogs.ts'

function pending(...values: readonly number[]): readonly HistoryPoint[] {
  return values.map((value, at) => ({ at: at * 60_000, perSecond: {}, latencyMs: {}, gauges: { pending: value } }))
}

test('an outbox that grows minute after minute is a backlog', () => {
  assert.deepEqual(growingBacklogs(pending(0, 100, 220, 300, 450, 700, 900)), [
    { title: 'Outbox grows', page: 'events', unit: '', from: 100, to: 900 },
  ])
})

test('a short one, one that shrinks, and one that goes up and down are none', () => {
  assert.deepEqual(growingBacklogs(pending(1, 2, 3, 4, 5, 6)), [])
  assert.deepEqual(growingBacklogs(pending(900, 800, 700, 600, 500, 400)), [])
  assert.deepEqual(growingBacklogs(pending(500, 900, 400, 800, 500, 900)), [])
  assert.deepEqual(growingBacklogs(pending(100, 900)), [])
})
