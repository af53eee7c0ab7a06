import assert from 'node:assert/strict'
import { isOnceError, limits } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const waits = defineRun('waits', async (run) => {
  await run.step('first', () => 1)
  return (await run.waitFor<string>('go')).kind
})

/** A run past its first step, held by a worker that is gone: `takenAt` is when that one took it. */
async function orphan(world: RunWorld, takenAt: (now: string) => string): Promise<void> {
  const first = await world.engine({ runs: [waits] })
  const { view } = await first.start(waits, { runId: 'r', input: null })
  await until('the run sleeps', view, ({ state }) => state === 'sleeping')
  await first.stop()
  const { sql } = world.store()
  await sql.query(
    `update onceonly_runs set worker = 'gone', state = 'running', due_at = null, taken_at = ${takenAt(sql.now)},
      takeovers = ${limits.runTakeovers - 1}`,
  )
}

onEveryRunStore('a worker that ends after a recorded step does not park its run', async (world) => {
  await orphan(world, () => '0')
  const engine = await world.engine({ runs: [waits] })
  await until('the run sleeps again', engine.handle('r').view, ({ state }) => state === 'sleeping')
  await engine.signal('r', 'go', null)
  assert.equal(await engine.handle('r').result({ waitMs: 120_000 }), 'received')
  assert.ok(!world.events.some(({ kind }) => kind === 'parked'))
})

onEveryRunStore('the last worker that dies before a step is recorded parks its run for an operator', async (world) => {
  await orphan(world, (now) => `${now} + 1000`)
  const engine = await world.engine({ runs: [waits] })
  const { view, result } = engine.handle('r')
  const { failure } = await until('the run is parked', view, ({ state }) => state === 'unknown')
  assert.equal(failure?.code, 'run_parked')
  assert.deepEqual(
    world.events.filter(({ kind }) => kind === 'parked'),
    [{ kind: 'parked', runId: 'r', definition: 'waits', takeovers: limits.runTakeovers }],
  )
  // A signal is kept for it, but does not wake it: a run that is started after it ends first.
  await engine.signal('r', 'go', null)
  const other = await engine.start(waits, { runId: 'other', input: null })
  await engine.signal('other', 'go', null)
  assert.equal(await other.result({ waitMs: 120_000 }), 'received')
  assert.equal((await view()).state, 'unknown')
  await engine.resume('r')
  assert.equal(await result({ waitMs: 120_000 }), 'received')
  await assert.rejects(engine.resume('r'), (error) => isOnceError(error, 'not_resolvable'))
})

onEveryRunStore('a parked run can be cancelled, and resumed after that', async (world) => {
  await orphan(world, (now) => `${now} + 1000`)
  const engine = await world.engine({ runs: [waits] })
  await until('the run is parked', engine.handle('r').view, ({ state }) => state === 'unknown')
  assert.equal(await engine.cancel('r'), true)
  await engine.resume('r')
  await engine.signal('r', 'go', null)
  assert.equal(await engine.handle('r').result({ waitMs: 120_000 }), 'received')
})
