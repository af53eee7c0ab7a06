import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBatch } from './batch.ts'

test('a batch is read item by item, and the rest of an item is its input', () => {
  const read = readBatch({ batchId: 'b', items: [{ itemKey: 'one', amount: 1 }, { itemKey: 'two' }] })
  assert.deepEqual(read, {
    batchId: 'b',
    items: [
      { itemKey: 'one', input: { amount: 1 } },
      { itemKey: 'two', input: {} },
    ],
  })
})

for (const [name, body, fields] of [
  ['no object', [], ['body']],
  ['no batch id', { items: [{ itemKey: 'a' }] }, ['batchId']],
  ['a batch id with a space', { batchId: 'a b', items: [{ itemKey: 'a' }] }, ['batchId']],
  ['no items', { batchId: 'b' }, ['items']],
  ['an empty list of items', { batchId: 'b', items: [] }, ['items']],
  ['too many items', { batchId: 'b', items: Array.from({ length: 4 }, (_, at) => ({ itemKey: `${at}` })) }, ['items']],
  ['an item that is no object', { batchId: 'b', items: [7] }, ['items[0]']],
  ['an item without a key', { batchId: 'b', items: [{ itemKey: 'a' }, {}] }, ['items[1].itemKey']],
  ['an item key that is a number', { batchId: 'b', items: [{ itemKey: 1 }] }, ['items[0].itemKey']],
  ['an item key that is too long', { batchId: 'b', items: [{ itemKey: 'k'.repeat(256) }] }, ['items[0].itemKey']],
  ['one item key twice', { batchId: 'b', items: [{ itemKey: 'a' }, { itemKey: 'a' }] }, ['items[1].itemKey']],
] as const) {
  test(`${name} is named by its field`, () => {
    const read = readBatch(body, { itemsMost: 3 })
    assert.deepEqual('errors' in read && read.errors.map(({ field }) => field), fields)
  })
}
