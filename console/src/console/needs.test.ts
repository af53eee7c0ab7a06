import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needCountText, needs } from './needs.ts'

function shown(standing: Partial<NonNullable<Parameters<typeof needs>[0]>>) {
  return Object.fromEntries(
    needs({ staleLeases: 0, unknownWaiting: 0, ...standing }).map((need) => [need.title, needCountText(need)]),
  )
}

test('a figure at which the server stops counting is shown as a lower bound', () => {
  assert.deepEqual(shown({ runsFailed: 9_999, runsStuck: 3 }), { 'Failed runs': '9,999', 'Stuck runs': '3' })
  assert.deepEqual(shown({ runsFailed: 10_000, staleLeases: 500 }), {
    'Failed runs': '10,000+',
    'Stale leases': '500+',
  })
  assert.deepEqual(shown({ unknownWaiting: 1, inboxDeadLetters: { one: 4_000, other: 6_000 } }), {
    'Unknown outcomes, dead letters': '10,001+',
  })
  assert.deepEqual(shown({ unknownWaiting: 1, runsUnknown: 2 }), { 'Unknown outcomes, dead letters': '3' })
})
