import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import type { RunContext, StepView } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

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
  'a result that was not recorded': async (run) => {
    await run.step('one', () => 1)
    return Math.random()
  },
}

for (const [what, body] of Object.entries(wrong)) {
  onEveryRunStore(`a definition that reads ${what} fails in its author's own test`, async (world) => {
    const run = defineRun('wrong', body)
    const engine = await world.engine({ runs: [run], checkDeterminism: true })
    const handle = await engine.start(run, { runId: 'w', input: null })
    await assert.rejects(handle.result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
    assert.equal((await handle.view()).failure?.code, 'run_diverged')
    // In earnest it would have gone through, and gone wrong one day.
    const loose = await world.engine({ runs: [run] })
    await (await loose.start(run, { runId: 'l', input: null })).result({ waitMs: 120_000 })
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
  await handle.result({ waitMs: 120_000 })
  assert.deepEqual(acts, ['left', 'quick'])
})

onEveryRunStore('the last value that a branch or a body reads is recorded like all before it', async (world) => {
  const seen: unknown[] = []
  const last = defineRun('last', async (run) => {
    for (const turn of [1, 2]) {
      const both = await run.all('both', {
        asks: async (branch) => {
          await branch.step('act', () => turn)
          return [branch.uuid(), branch.now(), branch.version('newer')]
        },
        askedNothing: async () => turn,
      })
      const won = await run.race('first', { only: async (branch) => [branch.random(), branch.uuid()] })
      await run.step('one', () => void seen.push({ both, won }))
      await run.sleep('moment', HOUR)
      await run.step('two', () => void seen.push({ both, won }))
    }
    return [run.now(), run.random(), run.uuid(), run.version('newest')]
  })
  const engine = await world.engine({ runs: [last] })
  const handle = await engine.start(last, { runId: 'l', input: null })
  // A run that is handed on is `sleeping` for a moment, too: what counts is that it has come to its sleep.
  const sleepTwice = async ({ view }: typeof handle) => {
    for (const turn of [1, 2]) {
      const isAsleep = ({ kind }: StepView) => kind === 'sleep'
      await until(
        `the run sleeps for the time number ${turn}`,
        view,
        ({ state, steps }) => state === 'sleeping' && steps.filter(isAsleep).length === turn,
      )
      await world.advance(HOUR)
    }
  }
  await sleepTwice(handle)
  const result = await handle.result({ waitMs: 120_000 })
  assert.deepEqual([seen[0], seen[2]], [seen[1], seen[3]])
  assert.notDeepEqual(seen[0], seen[2])
  const replay = await engine.replay('l')
  assert.deepEqual([replay.verdict, replay.result.replayed], ['identical', result])
  const { steps } = await handle.view()
  assert.deepEqual([...new Set(steps.map(({ kind }) => kind))].sort(), ['race', 'sleep', 'step'])

  const checked = await world.engine({ runs: [last], checkDeterminism: true })
  await engine.stop()
  const again = await checked.start(last, { runId: 'c', input: null })
  await sleepTwice(again)
  await again.result({ waitMs: 120_000 })
})

onEveryRunStore(
  'code may forget versions, and runs that passed a place before a change stay as they were',
  async (world) => {
    const body = (ask: (run: RunContext) => unknown, atLast: (run: RunContext) => unknown = () => null) =>
      defineRun('asks', async (run) => {
        const asked = ask(run)
        const { fork } = await run.all('both', {
          fork: async (branch) => {
            await branch.step('act', () => 1)
            return atLast(branch)
          },
        })
        await run.sleep('moment', HOUR)
        return [await run.step('report', () => asked), fork]
      })
    const before = body((run) => [run.version('a'), run.now(), run.version('b'), run.random()])
    const number = (value: unknown) => (typeof value === 'number' ? 'number' : value)
    for (const [runId, after, expected] of [
      ['forgotten', body((run) => [run.now(), run.random()]), [['number', 'number'], null]],
      ['half', body((run) => [run.now(), run.version('b'), run.random()]), [['number', true, 'number'], null]],
      [
        'turned',
        body((run) => [run.version('b'), run.version('c'), run.version('a'), run.now(), run.random()]),
        [[true, false, true, 'number', 'number'], null],
      ],
      [
        'late',
        body(
          (run) => [run.now(), run.random()],
          (branch) => branch.version('late'),
        ),
        [['number', 'number'], false],
      ],
    ] as const) {
      const first = await world.engine({ runs: [before] })
      const handle = await first.start(before, { runId, input: null })
      await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
      await first.stop()
      await world.advance(HOUR)
      const second = await world.engine({ runs: [after] })
      const [asked, fork] = await second.handle<[unknown[], unknown]>(runId).result({ waitMs: 120_000 })
      assert.deepEqual([asked.map(number), fork], expected, runId)
      assert.equal((await second.replay(runId)).verdict, 'identical', runId)
      await second.stop()
    }
  },
)
