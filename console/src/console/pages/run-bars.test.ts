import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StepView } from 'onceonly/run'
import { barsOf } from './run-bars.ts'

const step = (given: Partial<StepView>): StepView => ({
  id: 'step',
  key: 'key',
  branch: '',
  tick: 0,
  kind: 'step',
  state: 'succeeded',
  attempts: 1,
  result: null,
  plan: null,
  child: null,
  failures: [],
  dueAt: null,
  at: 0,
  ...given,
})

test('a step begins where the one before it ended, a retry where it first failed, a wait ends when it is due', () => {
  const failure = { number: 1, attempt: 1, at: 210, definite: true, name: 'Error', message: 'no' }
  const steps = [
    step({ id: 'first', at: 150 }),
    step({ id: 'second', at: 400, failures: [failure], attempts: 2 }),
    step({ id: 'pause', kind: 'sleep', state: 'waiting', at: 400, dueAt: 900 }),
    step({ id: 'third', state: 'intent', at: 910 }),
  ]
  const bars = barsOf({ startedAt: 100, endedAt: null, steps }, 1_000)
  assert.deepEqual(
    bars.map(({ from, to, kind, failedAt }) => [from, to, kind, failedAt]),
    [
      [100, 150, 'work', []],
      [150, 400, 'work', [210]],
      [400, 900, 'wait', []],
      [900, 1_000, 'work', []],
    ],
  )
})
