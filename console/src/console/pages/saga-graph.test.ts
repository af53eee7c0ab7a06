import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boxHeight, boxWidth, sagaGraph } from './saga-graph.ts'

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
