import assert from 'node:assert/strict'
import type { RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
const MINUTE = 60_000

onEveryRunStore('steps and branches may be called like what every object has, also after a sleep', async (world) => {
  const acts: string[] = []
  const odd = defineRun('odd', async (run) => {
    const steps: unknown[] = []
    for (const name of NAMES) steps.push(await run.step(name, () => (acts.push(name), `step ${name}`)))
    const branch = (name: string) => async (inside: RunContext) => inside.step(name, () => `branch ${name}`)
    const all = await run.all('all', Object.fromEntries(NAMES.map((name) => [name, branch(name)])))
    const won = await run.race('race', Object.fromEntries([['__proto__', branch('__proto__')]]))
    await run.sleep('night', MINUTE)
    return { steps, all: Object.entries(all), own: NAMES.map((name) => Object.hasOwn(all, name)), winner: won.winner }
  })
  const engine = await world.engine({ runs: [odd] })
  const handle = await engine.start(odd, { runId: 'odd', input: null })
  await until('it sleeps', handle.view, ({ state }) => state === 'sleeping')
  await world.advance(MINUTE)
  assert.deepEqual(await handle.result(), {
    steps: NAMES.map((name) => `step ${name}`),
    all: NAMES.toSorted().map((name) => [name, `branch ${name}`]),
    own: NAMES.map(() => true),
    winner: '__proto__',
  })
  assert.deepEqual(acts, NAMES)
})
