import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPartition } from './partition.ts'

test('work of one id runs in its order, one after the other; other ids do not wait', async () => {
  const partition = createPartition()
  const seen: string[] = []
  const first = Promise.withResolvers<void>()
  const slow = partition.run('a', async () => {
    seen.push('a1 begins')
    await first.promise
    seen.push('a1 ends')
    return 1
  })
  const next = partition.run('a', async () => void seen.push('a2'))
  await partition.run('b', async () => void seen.push('b1'))
  assert.deepEqual(seen, ['a1 begins', 'b1'])
  first.resolve()
  assert.equal(await slow, 1)
  await next
  assert.deepEqual(seen, ['a1 begins', 'b1', 'a1 ends', 'a2'])
})

test('work that fails rejects its own caller, and no later one', async () => {
  const partition = createPartition()
  const failing = partition.run('a', () => Promise.reject(new Error('no')))
  const next = partition.run('a', async () => 'yes')
  await assert.rejects(failing, /no/)
  assert.equal(await next, 'yes')
})
