import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createMemoryPlace } from 'onceonly/stream'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

test('a place in memory keeps one number of each sender, however many messages were settled', async () => {
  const place = createMemoryPlace()
  await place.identify({ client: 'ann', epoch: 1, generation: 1 })
  const position = { logs: {}, ordered: 0 }
  const count = 40_000
  let runs = 0
  const settle = (number: number) => place.settle(`bob/1/${number}`, position, async () => void (runs += 1))
  await settle(1)
  const before = heapBytes()
  for (let number = 2; number <= count; number++) await settle(number)
  const grown = heapBytes() - before
  // A list of their keys takes 77 bytes for each of them.
  assert.ok(grown < count * 20, `${grown} bytes`)
  await place.load()
  for (const number of [1, 777, count]) assert.equal(await settle(number), false)
  assert.equal(runs, count)
})
