import assert from 'node:assert/strict'
import { limits } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const waits = defineRun('waits', async (run) => (await run.waitFor<string>('go')).kind)

onEveryRunStore('a run that goes to sleep in order begins to count its takeovers anew', async (world) => {
  const first = await world.engine({ runs: [waits] })
  const { view } = await first.start(waits, { runId: 'r', input: null })
  await until('the run sleeps', view, ({ state }) => state === 'sleeping')
  await first.stop()
  const { sql } = world.store()
  // Each time its worker ends while it has the run, and before that the run was put down in order.
  for (let time = 0; time < limits.runTakeovers; time++) {
    await sql.query(
      `update onceonly_runs set worker = 'gone', state = 'running', due_at = null, taken_at = ${sql.now} + 1000`,
    )
    const engine = await world.engine({ runs: [waits] })
    const { state } = await until('the run is at rest', engine.handle('r').view, (seen) => seen.state !== 'running')
    assert.equal(state, 'sleeping', `after ${time + 1} workers`)
    await engine.stop()
  }
})
