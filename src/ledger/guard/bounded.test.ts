import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { mock, test } from 'node:test'
import { isOnceError } from '../core/errors.ts'
import { createBounded } from './bounded.ts'

const DEADLINE_MS = 250

/** Lets the time of the steps pass, and what follows from it happen. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 25) {
    mock.timers.tick(25)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function stage(context: { after(work: () => void): void }) {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const bounded = createBounded(DEADLINE_MS)
  const late: string[] = []
  const call = () => {
    const answer = Promise.withResolvers<string>()
    const result = bounded.call(
      () => answer.promise,
      (value) => void late.push(value),
      0,
    )
    const seen = { kind: 'waiting' as 'waiting' | 'answered' | 'given up' }
    result.then(
      () => (seen.kind = 'answered'),
      (error: unknown) => (seen.kind = isOnceError(error, 'store_unavailable') ? 'given up' : 'answered'),
    )
    return { answer, seen }
  }
  return { call, late }
}

test('a store that says nothing for the deadline is given up; its answer is not lost', async (context) => {
  const { call, late } = stage(context)
  const one = call()
  await pass(DEADLINE_MS - 25)
  assert.equal(one.seen.kind, 'waiting')
  await pass(50)
  assert.equal(one.seen.kind, 'given up')
  one.answer.resolve('granted')
  await pass(25)
  assert.deepEqual(late, ['granted'])
})

test('a queue in front of a store that answers does not count', async (context) => {
  const { call } = stage(context)
  const queue = Array.from({ length: 20 }, call)
  for (const { answer, seen } of queue) {
    await pass(DEADLINE_MS - 50)
    assert.equal(seen.kind, 'waiting')
    answer.resolve('next')
    await pass(25)
    assert.equal(seen.kind, 'answered')
  }
})

test('time in which this process was too busy to hear an answer does not count', async () => {
  const bounded = createBounded(20)
  const answer = bounded.call(
    () => stat('.'),
    () => {},
    0,
  )
  // The answer is there long before this ends, but the event loop looks at its timers first.
  for (const untilMs = performance.now() + 200; performance.now() < untilMs; );
  assert.ok((await answer).isDirectory())
})
