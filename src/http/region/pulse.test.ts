import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPulse } from './pulse.ts'

const times = { everyMs: 5, signMs: 50 }
const never = (signal: AbortSignal) =>
  new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a link that misses two heartbeats in a row is silent, for waiting requests only', async () => {
  let asked = 0
  const pulse = createPulse((signal) => {
    asked++
    return never(signal)
  }, times)
  const heard: string[] = []
  const silent = Promise.withResolvers<void>()
  const ends = [pulse.watch(() => heard.push('gone')), pulse.watch(() => silent.resolve())]
  ends[0]?.()
  await silent.promise
  assert.deepEqual([heard, asked], [[], 2])
  ends[1]?.()
  pulse.stop()
})

test('a response and a refusal are heartbeats; none is sent while no request waits', async () => {
  for (const sign of [async () => undefined, () => Promise.reject(new Error('refused'))]) {
    let asked = 0
    const enough = Promise.withResolvers<void>()
    const pulse = createPulse(() => {
      if (++asked === 5) enough.resolve()
      return sign()
    }, times)
    const end = pulse.watch(() => assert.fail('silent'))
    await enough.promise
    end()
    // A moment for questions that must not come any more, however long it takes.
    await sleep(times.everyMs * 10)
    assert.ok(asked <= 6, `${asked} questions`)
    pulse.stop()
  }
})

test('a sign that was missed once is forgiven by the next', async () => {
  let asked = 0
  const enough = Promise.withResolvers<void>()
  const pulse = createPulse((signal) => {
    if (++asked === 6) enough.resolve()
    return asked % 2 === 1 ? never(signal) : Promise.resolve()
  }, times)
  const end = pulse.watch(() => assert.fail('silent'))
  await enough.promise
  end()
  pulse.stop()
})
