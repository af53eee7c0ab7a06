import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDueLoop } from './due-loop.ts'
import { createTestRuntime } from './test-runtime.ts'

const MOST_MS = 30_000
const LEAST_MS = 1_000

function scene(answer: () => Promise<number | null>) {
  const runtime = createTestRuntime()
  const startMs = runtime.monotonicMs()
  const at: number[] = []
  const failures: unknown[] = []
  const loop = startDueLoop({
    runtime,
    mostMs: MOST_MS,
    leastMs: LEAST_MS,
    round() {
      at.push(runtime.monotonicMs() - startMs)
      return answer()
    },
    failed: (error) => failures.push(error),
  })
  return { runtime, at, failures, loop }
}

test('a loop for which nothing waits comes now and then, as a safety net', async () => {
  const { runtime, at, loop } = scene(async () => null)
  await runtime.advance(500)
  assert.deepEqual(at, [500])
  await runtime.advance(2 * MOST_MS)
  assert.deepEqual(at, [500, 30_500, 60_500])
  await loop.stop()
  await runtime.advance(2 * MOST_MS)
  assert.equal(at.length, 3)
})

test('a loop comes when it is due, and waits where it could not do what is due', async () => {
  const due = [400, 0, -3, 60_000]
  const { runtime, at } = scene(async () => due.shift() ?? null)
  await runtime.advance(10_000)
  assert.deepEqual(at, [500, 901, 1_901, 2_901])
  await runtime.advance(MOST_MS)
  assert.equal(at.length, 5, 'a time that is far away is looked at again before')
})

test('a ring begins a round at once, however often it comes, and the next one only after a pause', async () => {
  const { runtime, at, loop } = scene(async () => null)
  await runtime.advance(5_000)
  for (let n = 0; n < 5; n++) loop.ring()
  await runtime.advance(1)
  assert.deepEqual(at, [500, 5_000])
  loop.ring()
  loop.ring()
  await runtime.advance(5_000)
  assert.deepEqual(at, [500, 5_000, 6_000])
})

test('a ring during a round is not lost', async () => {
  const going = Promise.withResolvers<null>()
  const { runtime, at, loop } = scene(() => (at.length === 1 ? going.promise : Promise.resolve(null)))
  await runtime.advance(500)
  loop.ring()
  going.resolve(null)
  await runtime.advance(2_000)
  assert.deepEqual(at, [500, 1_500])
})

test('a round that fails is reported, and the next one comes soon', async () => {
  const { runtime, at, failures } = scene(async () => {
    if (at.length === 1) throw new Error('away')
    return null
  })
  await runtime.advance(5_000)
  assert.deepEqual([at, failures.length], [[500, 1_500], 1])
})

test('what is due soon begins at once, does not overlap, and is one more round while another is under way', async () => {
  let going = Promise.withResolvers<void>()
  const { runtime, at, loop } = scene(async () => {
    await going.promise
    return null
  })
  loop.soon()
  loop.soon()
  await runtime.settle()
  assert.deepEqual(at, [0])
  loop.soon()
  loop.soon()
  await runtime.settle()
  assert.deepEqual(at, [0])
  going.resolve()
  await runtime.settle()
  assert.deepEqual(at, [0, 0])
  going = Promise.withResolvers<void>()
  await runtime.advance(10_000)
  assert.deepEqual(at, [0, 0], 'then it sleeps')
})

test('after its stop no round begins, and the one that is under way has ended', async () => {
  const going = Promise.withResolvers<null>()
  const { runtime, at, loop } = scene(() => going.promise)
  loop.soon()
  await runtime.settle()
  let ended = false
  const stopping = loop.stop().then(() => {
    ended = true
  })
  await runtime.settle()
  assert.equal(ended, false)
  going.resolve(null)
  await stopping
  loop.soon()
  loop.ring()
  await runtime.advance(MOST_MS)
  assert.deepEqual(at, [0])
})

test('a loop that is due soon after a failure waits for its pause', async () => {
  const { runtime, at, failures, loop } = scene(async () => {
    if (at.length === 1) loop.soon()
    if (at.length === 1) throw new Error('away')
    return null
  })
  await runtime.advance(5_000)
  assert.deepEqual([at, failures.length], [[500, 1_500], 1])
})
