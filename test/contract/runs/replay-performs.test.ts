import assert from 'node:assert/strict'
import { defineRun, stepKey } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

onEveryRunStore(
  'a replay that is not dry performs what is open, under its keys; a second one, nothing',
  async (world) => {
    const keys: string[] = []
    const gate = Promise.withResolvers<void>()
    let evaluations = 0
    const mail = defineRun('mail', async (run) => {
      evaluations += 1
      await run.step('one', async ({ effectKey: key }) => {
        keys.push(key)
        await gate.promise
      })
      await run.step('two', ({ effectKey: key }) => void keys.push(key))
    })
    const engine = await world.engine({ runs: [mail] })
    const { result } = await engine.start(mail, { runId: 'r', input: null })
    await until('it is in its first step', () => keys.length === 1)
    const dry = await engine.replay('r', { dryRun: true })
    assert.deepEqual([dry.performed, evaluations, keys.length], [0, 2, 1])
    const replaying = engine.replay('r', { dryRun: false })
    // What it performs is counted from what was recorded before it.
    await until('the journal was read', () => evaluations === 3)
    gate.resolve()
    assert.equal((await replaying).performed, 2)
    await result()
    assert.equal((await engine.replay('r', { dryRun: false })).performed, 0)
    assert.deepEqual(keys, [stepKey('r', 'one', 0), stepKey('r', 'two', 0)])
  },
)
