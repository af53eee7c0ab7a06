import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { defineRun } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'

const RUNS = 1_000
const MOST = 3

onEveryRunStore('a process never drives more runs at once than its `concurrency`', async (world) => {
  let [now, most] = [0, 0]
  const full = Promise.withResolvers<void>()
  const busy = defineRun('busy', (run) =>
    run.step('work', async () => {
      now += 1
      most = Math.max(most, now)
      // The first ones wait for each other, so that the bound is reached and not only kept.
      if (now === MOST) full.resolve()
      await full.promise
      await setImmediate()
      now -= 1
    }),
  )
  const engine = await world.engine({ runs: [busy], concurrency: MOST })
  const starting = Array.from({ length: RUNS }, (_, n) => engine.start(busy, { runId: `${n}`, input: null }))
  const handles = await Promise.all(starting)
  for (const { result } of handles) await result({ waitMs: 120_000 })
  assert.equal(most, MOST)
})

onEveryRunStore('a start that finds its run already there gives its place back', async (world) => {
  const quick = defineRun('quick', (run) => run.step('work', () => 'done'))
  const engine = await world.engine({ runs: [quick], concurrency: 1 })
  for (let turn = 0; turn < 3; turn++) {
    const handle = await engine.start(quick, { runId: 'same', input: null })
    assert.equal(await handle.result({ waitMs: 120_000 }), 'done')
    await assert.rejects(engine.start(quick, { runId: 'same', input: 'other' }))
  }
  const other = await engine.start(quick, { runId: 'other', input: null })
  assert.equal(await other.result({ waitMs: 120_000 }), 'done')
})
