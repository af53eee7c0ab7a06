import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layered } from './layered.ts'

test('nodes stand below what leads to them, cycles included, and no two at one place', () => {
  const edges = [
    { from: 'initial', to: 'a', names: [] },
    { from: 'a', to: 'b', names: [] },
    { from: 'b', to: 'a', names: [] },
    { from: 'a', to: 'c', names: [] },
    { from: 'b', to: 'end', names: [] },
  ]
  const { places, columns, rows } = layered(['initial', 'a', 'b', 'c', 'end', 'lonely'], edges)
  const rowsOf = Object.fromEntries([...places].map(([node, { row }]) => [node, row]))
  assert.deepEqual(rowsOf, { initial: 0, lonely: 0, a: 1, b: 2, c: 2, end: 3 })
  assert.equal(new Set([...places.values()].map(({ column, row }) => `${column}/${row}`)).size, places.size)
  assert.deepEqual([columns, rows], [2, 4])
})
