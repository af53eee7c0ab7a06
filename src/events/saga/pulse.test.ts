import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime } from '../../runtime/runtime.ts'
import { createPulse } from './pulse.ts'

const turn = () => new Promise((resolve) => void setImmediate(resolve))

test('rounds never overlap, and a wish during a round is one more round after it', async () => {
  let running = 0
  let rounds = 0
  const open = Promise.withResolvers<void>()
  const pulse = createPulse(
    createRuntime(),
    async () => {
      assert.equal(++running, 1)
      rounds++
      await open.promise
      running--
    },
    assert.ifError,
  )
  const first = pulse.round()
  pulse.soon()
  pulse.soon()
  await turn()
  await turn()
  assert.equal(rounds, 1)
  open.resolve()
  await first
  assert.equal(rounds, 2)
  await pulse.stop()
})

test('a round that fails is reported to its waiting caller, or else to the listener', async () => {
  const failures: unknown[] = []
  const pulse = createPulse(
    createRuntime(),
    () => Promise.reject(new Error('away')),
    (error) => failures.push(error),
  )
  await assert.rejects(pulse.round(), /away/)
  pulse.soon()
  await turn()
  await turn()
  assert.equal(failures.length, 1)
})

test('after its stop no round begins', async () => {
  let rounds = 0
  const pulse = createPulse(createRuntime(), async () => void rounds++, assert.ifError)
  pulse.soon()
  await pulse.stop()
  await turn()
  pulse.soon()
  await pulse.round()
  assert.equal(rounds, 0)
})
