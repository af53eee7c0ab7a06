import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { onEveryRunStore } from './world.ts'

const echo = (run: RunContext, id: string, input: unknown) => run.step(id, { input }, () => input)

let calls = 0
/** What authors get wrong: each of them reads something that another execution reads differently. */
const wrong: Record<string, (run: RunContext) => Promise<unknown>> = {
  'the clock of the process': async (run) => {
    const at = performance.now()
    return echo(run, 'at', at)
  },
  chance: async (run) => {
    const number = Math.random()
    await run.step('one', () => 1)
    return echo(run, 'number', number)
  },
  'state outside of the body': async (run) => {
    calls += 1
    await run.step(`call ${calls}`, () => 1)
    return run.step('two', () => 2)
  },
  'a result that nobody recorded': async (run) => {
    await run.step('one', () => 1)
    return Math.random()
  },
}

for (const [what, body] of Object.entries(wrong)) {
  onEveryRunStore(`a definition that reads ${what} fails in its author's own test`, async (world) => {
    const run = defineRun('wrong', body)
    const engine = await world.engine({ runs: [run], checkDeterminism: true })
    const handle = await engine.start(run, { runId: 'w', input: null })
    await assert.rejects(handle.result({ waitMs: 20_000 }), (error) => isOnceError(error, 'run_failed'))
    assert.equal((await handle.view()).failure?.code, 'run_diverged')
    // In earnest it would have gone through, and gone wrong one day.
    const loose = await world.engine({ runs: [run] })
    await (await loose.start(run, { runId: 'l', input: null })).result({ waitMs: 20_000 })
  })
}

onEveryRunStore('a definition that is deterministic passes, and no step acts twice', async (world) => {
  const acts: string[] = []
  const right = defineRun('right', async (run) => {
    const at = run.now()
    await echo(run, 'at', at)
    const id = run.uuid()
    const both = await run.all('both', {
      left: async (branch) => {
        await branch.sleep('moment', 1)
        return branch.step('act', () => acts.push('left'))
      },
      right: (branch) => echo(branch, 'id', id),
    })
    const first = await run.race('first', {
      quick: (branch) => branch.step('act', () => acts.push('quick')),
      slow: (branch) => branch.waitFor('never'),
    })
    return { at, id, both, first }
  })
  const engine = await world.engine({ runs: [right], checkDeterminism: true })
  const handle = await engine.start(right, { runId: 'r', input: null })
  await handle.result({ waitMs: 20_000 })
  assert.deepEqual(acts, ['left', 'quick'])
})
