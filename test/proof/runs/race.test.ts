import assert from 'node:assert/strict'
import { final } from 'onceonly'
import type { Engine, RunContext, RunView } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

interface Shape {
  body(run: RunContext): Promise<unknown>
  /** The signal `go` is sent once the run waits. */
  readonly signalled: boolean
  readonly result: unknown
}

const timer = (run: RunContext) => run.sleep('timer', HOUR).then(() => 'late')
const signal = (run: RunContext) => run.waitFor<string>('go').then(({ kind }) => kind)
const bounded = (timeoutMs: number) => async (run: RunContext) => (await run.waitFor('go', { timeoutMs })).kind
const won = (winner: string, value: unknown) => ({ winner, value })

const shapes: Record<string, Shape> = {
  'a signal against a timer, and none comes': {
    body: (run) => run.race('decision', { approved: signal, expired: timer }),
    signalled: false,
    result: won('expired', 'late'),
  },
  'a timer against a signal, and none comes': {
    body: (run) => run.race('decision', { a: timer, b: signal }),
    signalled: false,
    result: won('a', 'late'),
  },
  'a signal that arrives before the timer': {
    body: (run) => run.race('decision', { approved: signal, expired: timer }),
    signalled: true,
    result: won('approved', 'received'),
  },
  'a wait with a shorter timeout against a timer': {
    body: (run) =>
      run.race('decision', { approved: bounded(HOUR), expired: (branch) => branch.sleep('timer', 9 * HOUR) }),
    signalled: false,
    result: won('approved', 'timed_out'),
  },
  'a wait with a longer timeout against a timer': {
    body: (run) => run.race('decision', { approved: bounded(9 * HOUR), expired: timer }),
    signalled: false,
    result: won('expired', 'late'),
  },
  'two timers': {
    body: (run) => run.race('decision', { long: (branch) => branch.sleep('long', 9 * HOUR), short: timer }),
    signalled: false,
    result: won('short', 'late'),
  },
  'a step before the wait in each branch': {
    body: (run) =>
      run.race('decision', {
        approved: async (branch) => `${await branch.step('ask', () => 'asked')} ${await signal(branch)}`,
        expired: async (branch) => `${await branch.step('note', () => 'noted')} ${await timer(branch)}`,
      }),
    signalled: true,
    result: won('approved', 'asked received'),
  },
  'a step behind the race': {
    body: async (run) => {
      const { winner } = await run.race('decision', { approved: signal, expired: timer })
      return run.step('act', () => `acted on ${winner}`)
    },
    signalled: false,
    result: 'acted on expired',
  },
  'two turns of a race, with values asked for around them': {
    body: async (run) => {
      const turns: unknown[] = []
      for (const turn of [1, 2]) {
        const id = run.uuid()
        const { winner } = await run.race('decision', { approved: signal, expired: timer })
        turns.push(await run.step('act', () => `${turn} ${winner} ${id.length}`))
      }
      return [...turns, run.uuid().length]
    },
    signalled: true,
    result: ['1 approved 36', '2 expired 36', 36],
  },
  'a race inside a race': {
    body: (run) =>
      run.race('outer', {
        inner: (branch) => branch.race('inner', { approved: signal, expired: timer }),
        never: (branch) => branch.waitFor('never'),
      }),
    signalled: false,
    result: won('inner', won('expired', 'late')),
  },
  'a race whose branches all fail, and a step behind it': {
    body: async (run) => {
      const failing = async (branch: RunContext) => {
        await timer(branch)
        throw new Error(`refused at ${branch.runId}`)
      }
      const message = await run
        .race('decision', { a: failing, b: failing })
        .then(String, (error: Error) => error.message)
      return run.step('act', () => message)
    },
    signalled: false,
    result: 'refused at r',
  },
}

for (const [what, { body, signalled, result }] of Object.entries(shapes)) {
  for (const [how, checkDeterminism] of [
    ['in one process', false],
    ['checked', true],
  ] as const) {
    onEveryRunStore(`${what}: ${how}`, async (world) => {
      const run = defineRun('race', body)
      const engine = await world.engine({ runs: [run], checkDeterminism })
      const handle = await engine.start(run, { runId: 'r', input: null })
      await drive(world, engine, signalled)
      assert.deepEqual(await handle.result({ waitMs: 120_000 }), result)
      assert.equal((await engine.replay('r')).verdict, 'identical')
    })
  }

  onEveryRunStore(`${what}: with another worker for every turn`, async (world) => {
    const run = defineRun('race', body)
    const starter = await world.engine({ runs: [run], work: false })
    await starter.start(run, { runId: 'r', input: null })
    await drive(world, starter, signalled, async (rests) => {
      const worker = await world.engine({ runs: [run] })
      await rests()
      await worker.stop()
    })
    assert.deepEqual(await starter.handle('r').result(), result)
    assert.equal((await starter.replay('r')).verdict, 'identical')
  })
}

onEveryRunStore('a race that failed is resumed at the failed steps of its branches', async (world) => {
  let isFixed = false
  const run = defineRun('race', async (context) => {
    const early = await context.step('early', () => Promise.reject(final(new Error('no')))).catch(() => 'caught')
    const failing = (branch: RunContext) =>
      branch.step('try', () => (isFixed ? 'done' : Promise.reject(final(new Error('refused')))))
    return [early, await context.race('decision', { a: failing, b: failing })]
  })
  const engine = await world.engine({ runs: [run] })
  const handle = await engine.start(run, { runId: 'r', input: null })
  const { steps } = await until('the run has failed', handle.view, ({ state }) => state === 'failed')
  assert.deepEqual(steps.map(({ id, state }) => `${id} ${state}`).toSorted(), [
    'decision failed',
    'decision/a/try failed',
    'decision/b/try failed',
    'early failed',
  ])
  assert.equal((await engine.replay('r')).verdict, 'identical')
  isFixed = true
  await engine.resume('r')
  const [early, { value }] = (await handle.result({ waitMs: 120_000 })) as [string, { value: string }]
  assert.deepEqual([early, value], ['caught', 'done'])
  assert.equal((await engine.replay('r')).verdict, 'identical')
})

/** From rest to rest: sends the signal at the first one, and lets an hour pass at every other, until the run has ended. */
async function drive(
  world: RunWorld,
  engine: Engine,
  signalled: boolean,
  turn: (rests: () => Promise<unknown>) => Promise<unknown> = (rests) => rests(),
): Promise<void> {
  const { view } = engine.handle('r')
  let passedMs = 0
  // A run that is due was handed over a moment ago, or woken; nothing that it waits for is due within minutes.
  const isAtRest = ({ state, dueAt }: RunView) =>
    state === 'succeeded' ||
    state === 'failed' ||
    (state === 'sleeping' && (dueAt === null || dueAt > Date.now() + passedMs + MINUTE))
  for (let signals = signalled ? 1 : 0; ; signals--) {
    await turn(() => until('the run rests', view, isAtRest))
    if ((await view()).state !== 'sleeping') return
    if (signals > 0) await engine.signal('r', 'go', null)
    else {
      passedMs += HOUR
      await world.advance(HOUR)
    }
  }
}
