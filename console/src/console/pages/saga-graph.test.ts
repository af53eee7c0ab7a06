import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boxHeight, boxWidth, curveOf, sagaGraph } from './saga-graph.ts'

const to = (...states: readonly string[]) => ({ kind: 'handled', to: states }) as const

test('states stand below what leads to them, and no line crosses a third state', () => {
  const matrix = {
    initial: { Started: to('Uploading'), Late: to('Uploading') },
    Uploading: { Uploaded: to('Parsing'), Expired: to('Error') },
    Parsing: { Parsed: to('Completed', 'Parsing'), Failed: to('Error'), Late: to('Uploading') },
    Completed: {},
    Error: {},
  }
  const events = ['Started', 'Late', 'Uploaded', 'Expired', 'Parsed', 'Failed']
  const { states, edges } = sagaGraph({ matrix, events })
  const y = (name: string) => states.find((state) => state.name === name)?.y ?? 0
  assert.ok(y('initial') < y('Uploading') && y('Uploading') < y('Parsing') && y('Parsing') < y('Completed'))
  assert.deepEqual(edges.find(({ from }) => from === 'initial')?.events, ['Started', 'Late'])
  for (const { from, to: target, path } of edges) {
    for (const state of states.filter(({ name }) => name !== from && name !== target)) {
      const inside = path.filter(
        (point) => Math.abs(point.x - state.x) < boxWidth / 2 && Math.abs(point.y - state.y) < boxHeight / 2,
      )
      assert.deepEqual(inside, [], `${from} to ${target} crosses ${state.name}`)
    }
  }
})

test('a line passes through its own label, straight', () => {
  const matrix = { initial: { Started: to('Working', 'Error') }, Working: { Failed: to('Error') }, Error: {} }
  const { edges } = sagaGraph({ matrix, events: ['Started', 'Failed'] })
  for (const { path, label } of edges) {
    const at = path.findIndex(({ y }) => y > label.y)
    assert.deepEqual([path[at - 1]?.x, path[at]?.x], [label.x, label.x])
  }
  assert.equal(
    curveOf([
      { x: 1, y: 0 },
      { x: 1, y: 10 },
      { x: 5, y: 20 },
    ]),
    'M1 0C1 5 1 5 1 10C1 15 5 15 5 20',
  )
})
