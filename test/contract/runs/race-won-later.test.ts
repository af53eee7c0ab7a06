import assert from 'node:assert/strict'
import { defineRun, type RunContext } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

/** Pays with the first card that works; without one it waits hours for a customer. */
const ordering = (pay: (run: RunContext) => Promise<unknown>) =>
  defineRun('order', async (run) => {
    const paid = await run.race('pay', { visa: pay, amex: pay }).catch(() => null)
    await run.sleep('a person looks at it', HOUR)
    return paid === null ? 'given back' : 'shipped'
  })

onEveryRunStore('a race that failed for all cannot be won by other code, and the run says so', async (world) => {
  const refused = ordering(() => Promise.reject(new Error('The card was refused')))
  const first = await world.engine({ runs: [refused] })
  const handle = await first.start(refused, { runId: 'order-1', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await first.stop()
  await world.advance(2 * HOUR)

  // Everything behind the race was done for an unpaid order.
  const second = await world.engine({ runs: [ordering(() => Promise.resolve('paid'))] })
  const { failure } = await until(
    'the run has ended',
    () => second.get('order-1'),
    ({ state }) => state === 'failed' || state === 'succeeded',
  )
  assert.equal(failure?.code, 'run_diverged')
  assert.match(failure?.message ?? '', /All branches of pay failed .* now (visa|amex) succeeds/)
})
