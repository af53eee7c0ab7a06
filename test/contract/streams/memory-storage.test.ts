import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createMemoryStorage } from 'onceonly/stream'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

test('a storage in memory keeps one number of each sender, however many messages were settled', async () => {
  const storage = createMemoryStorage()
  await storage.identify({ client: 'ann', epoch: 1, generation: 1 })
  const position = { logs: {}, ordered: 0 }
  const count = 40_000
  const rounds = 3
  let runs = 0
  const settle = (number: number) => storage.settle(`bob/1/${number}`, position, async () => void (runs += 1))
  const grown: number[] = []
  for (let round = 0; round < rounds; round++) {
    const before = heapBytes()
    for (let number = round * count + 1; number <= (round + 1) * count; number++) await settle(number)
    grown.push(heapBytes() - before)
  }
  // A list of their keys takes 77 bytes for each of them, in every round; what else grows, grows in some.
  assert.ok(Math.min(...grown) < count * 20, `${grown} bytes`)
  await storage.load()
  for (const number of [1, 777, rounds * count]) assert.equal(await settle(number), false)
  assert.equal(runs, rounds * count)
})
