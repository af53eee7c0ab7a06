import assert from 'node:assert/strict'
import { notDone } from 'onceonly'
import { defineRun, stepKey } from 'onceonly/run'
import { onEveryRunStore } from '../../support/runs/world.ts'

onEveryRunStore('an attempt that did nothing is tried again under the key of the first', async (world) => {
  const keys: string[] = []
  const flaky = defineRun('flaky', (run) =>
    run.step('send', { retry: { backoff: 'fixed', baseMs: 1 } }, ({ effectKey: key }) => {
      keys.push(key)
      if (keys.length < 3) throw notDone(new Error('not now'))
      return 'sent'
    }),
  )
  const engine = await world.engine({ runs: [flaky] })
  const { result } = await engine.start(flaky, { runId: 'r', input: null })
  assert.equal(await result(), 'sent')
  assert.deepEqual(keys, Array(3).fill(stepKey('r', 'send', 0)))
})
