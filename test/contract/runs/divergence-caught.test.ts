import assert from 'node:assert/strict'
import { defineRun, type RunContext } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

const changes: Readonly<Record<string, (run: RunContext) => unknown>> = {
  'another step': (run) => run.step('charge', () => 'charged'),
  'another input': (run) => run.step('pay', { input: { cents: 200 } }, () => 'paid'),
  'another value': (run) => run.random(),
  'in a branch': (run) => run.all('pay', { visa: (branch) => branch.step('charge', () => 'charged') }),
}

for (const [what, pay] of Object.entries(changes)) {
  onEveryRunStore(`changed code that catches everything runs no step (${what})`, async (world) => {
    const undone: string[] = []
    const before = defineRun('order', async (run) => {
      await run.step('pay', { input: { cents: 100 } }, () => 'paid')
      await run.sleep('packing', HOUR)
      return 'shipped'
    })
    const first = await world.engine({ runs: [before] })
    const handle = await first.start(before, { runId: 'order-1', input: null })
    await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
    await first.stop()
    await world.advance(2 * HOUR)

    const after = defineRun('order', async (run) => {
      try {
        await pay(run)
      } catch {
        undone.push('notified the customer')
      }
      await run.step('pay', { input: { cents: 100 } }, () => 'paid').catch(() => null)
      await run.sleep('packing', HOUR).catch(() => null)
      await run.step('refund', () => undone.push('gave the money back')).catch(() => null)
      return 'given back'
    })
    const second = await world.engine({ runs: [after] })
    const { state, failure } = await until(
      'the run has ended',
      () => second.get('order-1'),
      (view) => view.state === 'failed' || view.state === 'succeeded',
    )
    assert.deepEqual([state, failure?.code], ['failed', 'run_diverged'])
    assert.ok(!undone.includes('gave the money back'))
  })
}
