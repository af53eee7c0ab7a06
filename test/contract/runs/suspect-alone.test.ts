import assert from 'node:assert/strict'
import { limits } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'

onEveryRunStore('a run on its last takeover has its process for itself', async (world) => {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  let others = 0
  const suspect = defineRun('suspect', (run) =>
    run.step('work', async () => {
      begun.resolve()
      await gate.promise
      return 'done'
    }),
  )
  const other = defineRun('other', (run) => run.step('work', () => ++others))
  const runs = [suspect, other]
  const desk = await world.engine({ runs, work: false })
  const { result } = await desk.start(suspect, { runId: 'r', input: null })
  await world.store().sql.query(`update onceonly_runs set takeovers = ${limits.runTakeovers - 1}`)
  const engine = await world.engine({ runs })
  await begun.promise
  const beganAtMs = performance.now()
  const next = await engine.start(other, { runId: 'next', input: null })
  for (let look = 0; look < 5; look++) await next.view()
  const before = others
  // After that time it shares its process.
  if (performance.now() - beganAtMs < limits.runAloneMs / 2) assert.equal(before, 0)
  gate.resolve()
  assert.equal(await result({ waitMs: 120_000 }), 'done')
  assert.equal(await next.result({ waitMs: 120_000 }), 1)
})
