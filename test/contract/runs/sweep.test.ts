import assert from 'node:assert/strict'
import { defineRun } from 'onceonly/run'
import { DAY, limits, SECOND } from '../../../src/ledger/core/limits.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const RUNS = 2 * limits.runSweepRuns + 1

/** The first pause of the sweep is over at once; every other pause takes its time. */
function impatient(): Runtime {
  const runtime = createRuntime()
  let hasPassed = false
  return {
    ...runtime,
    setTimer(ms, fire, background) {
      const passes = !hasPassed && ms >= limits.sweepEveryMs / 2
      hasPassed ||= passes
      return runtime.setTimer(passes ? 0 : ms, fire, background)
    },
  }
}

onEveryRunStore('the sweep continues while it removes something, however many runs have ended', async (world) => {
  const quick = defineRun('quick', async () => null)
  const store = world.store()
  const engine = await world.engine({ runs: [quick], concurrency: RUNS })
  const starting = Array.from({ length: RUNS }, (_, n) => engine.start(quick, { runId: `${n}`, input: null }))
  for (const { result } of await Promise.all(starting)) await result({ waitMs: 120_000 })
  await engine.stop()
  await world.advance(limits.runKeepMs + DAY)
  // A short lease keeps its heartbeats apart from the pauses of the sweep.
  await world.engine({ runs: [quick], runtime: impatient(), leaseMs: 10 * SECOND })
  const left = await until(
    'all of them are gone',
    async () => (await store.sql.query<{ n: unknown }>('select count(*) as n from onceonly_runs'))[0],
    (row) => Number(row?.n) === 0,
  )
  assert.equal(Number(left?.n), 0)
})
