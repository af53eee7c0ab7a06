import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { createLedger } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'

onEveryRunStore('what a transactional step left running is outside of its transaction afterwards', async (world) => {
  const store: SqlStore = world.store()
  const once = createLedger({ store })
  const charge = once.operation({ name: 'charge', effect: 'external' })
  const ended = Promise.withResolvers<void>()
  let left: Promise<string> = Promise.reject(new Error('the step did not run'))
  left.catch(() => undefined)
  const run = defineRun('order', (context) =>
    context.step('place', { semantics: 'transactional' }, async () => {
      left = ended.promise.then(() =>
        charge.run({ tenant: 'acme', caller: 'ann', key: 'order-1' }, null, async () => 'charged'),
      )
      left.catch(() => undefined)
      return 'placed'
    }),
  )
  const engine = await world.engine({ runs: [run] }, () => store)
  const handle = await engine.start(run, { runId: 'r', input: null })
  assert.equal(await handle.result({ waitMs: 120_000 }), 'placed')
  ended.resolve()
  assert.equal(await left, 'charged')
  await once.stop()
})
