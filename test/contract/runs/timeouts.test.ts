import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { RunContext } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const MINUTE = 60_000
const waits = (timeoutMs?: number) =>
  defineRun(
    'waits',
    async (run: RunContext) => (await run.waitFor('go')).kind,
    timeoutMs === undefined ? {} : { timeoutMs },
  )

onEveryRunStore('a run that takes too long fails, asleep or in a step, and can be resumed', async (world) => {
  const aborted = Promise.withResolvers<void>()
  const waiting = waits(MINUTE)
  const stuck = defineRun(
    'stuck',
    (run: RunContext) =>
      run.step('hang', ({ signal }) => {
        signal.addEventListener('abort', () => aborted.resolve())
        return new Promise<void>(() => {})
      }),
    { timeoutMs: MINUTE },
  )
  const engine = await world.engine({ runs: [waiting, stuck] })
  const asleep = await engine.start(waiting, { runId: 'asleep', input: undefined })
  const inStep = await engine.start(stuck, { runId: 'in a step', input: undefined })
  await until('one sleeps', asleep.view, ({ state }) => state === 'sleeping')
  await world.advance(MINUTE / 2)
  assert.equal((await asleep.view()).state, 'sleeping')
  await world.advance(MINUTE / 2)
  for (const { result } of [asleep, inStep]) {
    await assert.rejects(result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_timed_out'))
  }
  await aborted.promise
  await engine.resume('asleep')
  await engine.signal('asleep', 'go', null)
  assert.equal(await asleep.result({ waitMs: 120_000 }), 'received')
})

onEveryRunStore('the time in a queue does not count', async (world) => {
  const mail = defineQueue('mail', { concurrency: 1 })
  const waiting = waits(MINUTE)
  const engine = await world.engine({ runs: [waiting], queues: [mail] })
  await engine.enqueue(waiting, { queue: mail, runId: '1', input: undefined })
  await until(
    'it has begun',
    () => engine.get('1'),
    ({ state }) => state === 'sleeping',
  )
  const { result, view } = await engine.enqueue(waiting, { queue: mail, runId: '2', input: undefined })
  await world.advance(MINUTE)
  // The place of the first is free with its end.
  await until('the other has begun', view, ({ state }) => state === 'sleeping')
  await engine.signal('2', 'go', null)
  assert.equal(await result({ waitMs: 120_000 }), 'received')
  assert.equal((await engine.get('1')).failure?.code, 'run_timed_out')
})
