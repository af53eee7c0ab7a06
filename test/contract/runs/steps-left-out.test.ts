import assert from 'node:assert/strict'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

onEveryRunStore('code that ends before a step that was recorded has changed, and the run says so', async (world) => {
  let paid = 0
  const before = defineRun('order', async (run) => {
    await run.step('pay', () => ++paid)
    await run.sleep('packing', HOUR)
    return 'shipped'
  })
  const first = await world.engine({ runs: [before] })
  const handle = await first.start(before, { runId: 'order-1', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  assert.equal(paid, 1)
  await first.stop()
  await world.advance(2 * HOUR)

  // The new code does neither, and would call the order done.
  const after = defineRun('order', async () => 'nothing to do')
  const second = await world.engine({ runs: [after] })
  const { failure } = await until(
    'the run has failed',
    () => second.get('order-1'),
    ({ state }) => state === 'failed' || state === 'succeeded',
  )
  assert.equal(failure?.code, 'run_diverged')
})
