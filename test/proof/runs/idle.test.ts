import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, watched } from '../../support/runs/world.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const RUNS = 200
const LATER = 5
const IDLE_MS = 4_000
/** One look a second, a heartbeat of four statements every ten: twice that, for chance and slow machines. */
const MOST_PER_SECOND = 3

onEveryRunStore('timers of days fire after a restart, in order, and idle workers hardly ask', async (world) => {
  const ended: string[] = []
  const nap = defineRun('nap', async (run, days: number) => {
    await run.sleep('nap', days * DAY)
    return run.step('wake', () => void ended.push(run.runId))
  })
  const first = await world.engine({ runs: [nap] })
  const later = Array.from({ length: LATER }, (_, index) => ({
    runId: `later ${index}`,
    input: 2 + (LATER - index) / 24,
  }))
  const rest = Array.from({ length: RUNS }, (_, index) => ({ runId: `nap ${index}`, input: 30 }))
  await Promise.all([...later, ...rest].map((start) => first.start(nap, start)))
  await until(
    'all runs sleep',
    () => first.list({ state: 'sleeping' }),
    ({ runs }) => runs.length === RUNS + LATER,
  )
  await first.stop()

  let statements = 0
  await world.engine({ runs: [nap], pollMs: 1_000 }, (store) =>
    watched(store, (_text, send) => {
      statements += 1
      return send()
    }),
  )
  // Queries of the start may fall into the first span on a slow machine; an engine that polls too often never rests.
  const perSecond = await until(
    `the engine polls at most ${MOST_PER_SECOND} times a second`,
    async () => {
      statements = 0
      await sleep(IDLE_MS)
      return statements / (IDLE_MS / 1_000)
    },
    (seen) => seen <= MOST_PER_SECOND,
  )
  console.log(`${perSecond} statements a second with ${RUNS + LATER} sleeping runs`)

  assert.deepEqual(ended, [])
  await world.advance(2 * DAY)
  for (let hour = 1; hour <= LATER; hour++) {
    await world.advance(HOUR)
    await until(
      `${hour} runs have ended`,
      async () => ended.length,
      (count) => count >= hour,
    )
  }
  assert.deepEqual(ended, later.map(({ runId }) => runId).toReversed())
})
