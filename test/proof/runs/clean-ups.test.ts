import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Engine, RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore, untilState, watched } from '../../support/runs/world.ts'

const HOUR = 3_600_000

/** A room, a table and a car, each with a clean-up of its own, and then a wait. */
function booking(done: string[], between: (cleanUp: RunContext) => Promise<void> = async () => {}) {
  const book = async (run: RunContext, what: string) => {
    let found: string | null = null
    await run.onCancel(`free ${what}`, async (cleanUp) => {
      await cleanUp.step('free', () => done.push(`freed ${found}`))
      await between(cleanUp)
      await cleanUp.step('note', () => done.push(`noted ${what}`))
    })
    found = await run.step(`book ${what}`, () => {
      done.push(`booked ${what}`)
      return what
    })
  }
  return defineRun('booking', async (run) => {
    await book(run, 'room')
    await run.all('more', { car: (branch) => book(branch, 'car'), table: (branch) => book(branch, 'table') })
    await run.sleep('pause', 0)
    return run.waitFor('paid')
  })
}

const waits = (world: { get(id: string): Promise<{ state: string }> }, id = 'b') =>
  until(
    'it waits',
    () => world.get(id),
    ({ state }) => state === 'sleeping',
  )

onEveryRunStore('a cancel runs the declared clean-ups, the last one first, each step once', async ({ engine }) => {
  const done: string[] = []
  const run = booking(done)
  const { start, get, cancel, resume, replay } = await engine({ runs: [run] })
  const started = await start(run, { runId: 'b', input: null })
  await waits({ get })
  done.length = 0
  assert.equal(await cancel('b'), true)
  assert.equal(await cancel('b'), false)
  await assert.rejects(started.result(), { code: 'run_cancelled' })
  assert.deepEqual([...done].sort(), [
    'freed car',
    'freed room',
    'freed table',
    'noted car',
    'noted room',
    'noted table',
  ])
  assert.deepEqual(done.slice(-2), ['freed room', 'noted room'])
  const { state, cancelledAt, endedAt } = await get('b')
  assert.equal(state, 'cancelled')
  assert.ok(cancelledAt !== null && endedAt !== null && cancelledAt <= endedAt)
  await assert.rejects(resume('b'), { code: 'not_resolvable' })
  const { verdict, performed } = await replay('b')
  assert.deepEqual([verdict, performed], ['identical', 0])
})

onEveryRunStore('a clean-up continues in another process, and repeats no step', async (world: RunWorld) => {
  const done: string[] = []
  const run = booking(done, (cleanUp) => cleanUp.sleep('breath', HOUR))
  const one = await world.engine({ runs: [run] })
  await one.start(run, { runId: 'b', input: null })
  await waits(one)
  done.length = 0
  await one.cancel('b')
  await until(
    'it breathes',
    () => one.get('b'),
    ({ state }) => state === 'sleeping',
  )
  assert.equal(done.length, 1)
  await one.stop()
  const two = await world.engine({ runs: [run] })
  const look = async () => {
    const view = await two.get('b')
    if (view.state === 'sleeping') await world.advance(HOUR)
    return view
  }
  await until('it is done', look, ({ state }) => state === 'cancelled')
  await assert.rejects(two.handle('b').result(), { code: 'run_cancelled' })
  assert.equal(new Set(done).size, 6)
  assert.equal(done.length, 6, 'none was repeated')
})

onEveryRunStore('a clean-up that fails fails the run, and a resume cleans up from there', async ({ engine }) => {
  let isBroken = true
  const done: string[] = []
  const run = defineRun('r', async (context) => {
    await context.onCancel('undo', async (cleanUp) => {
      await cleanUp.step('first', () => done.push('first'))
      await cleanUp.step('second', { semantics: 'transactional', retry: { attempts: 1 } }, async () => {
        if (isBroken) throw new Error('away')
        done.push('second')
      })
    })
    await context.sleep('long', HOUR)
  })
  const { start, get, cancel, resume } = await engine({ runs: [run] })
  const { result } = await start(run, { runId: 'b', input: null })
  await waits({ get })
  await cancel('b')
  await assert.rejects(result(), { code: 'run_failed' })
  isBroken = false
  await resume('b')
  await assert.rejects(result(), { code: 'run_cancelled' })
  assert.deepEqual(done, ['first', 'second'])
})

onEveryRunStore(
  'a run without clean-ups is cancelled at once, and continues from its journal when resumed',
  async (world) => {
    let calls = 0
    const run = defineRun('r', async (context) => {
      const id = await context.step('create', () => ++calls)
      await context.sleep('long', HOUR)
      return id
    })
    const { start, get, cancel, resume } = await world.engine({ runs: [run] })
    const { result } = await start(run, { runId: 'b', input: null })
    await waits({ get })
    await cancel('b')
    assert.equal((await get('b')).state, 'cancelled')
    await resume('b')
    await world.advance(2 * HOUR)
    assert.equal(await result(), 1)
    assert.equal(calls, 1)
  },
)

onEveryRunStore('a run that takes too long cleans up after itself before it fails', async (world) => {
  const done: string[] = []
  let isBroken = true
  const nap = defineRun('nap', (run) => run.sleep('nap', 3 * HOUR))
  const run = defineRun(
    'r',
    async (context) => {
      await context.onCancel('undo', async (cleanUp) => {
        await cleanUp.step('first', () => done.push('first'))
        await cleanUp.sleep('breath', 2 * HOUR)
        await cleanUp.step('second', { semantics: 'transactional', retry: { attempts: 1 } }, async () => {
          if (isBroken) throw new Error('away')
          done.push('second')
        })
      })
      await context.step('do', () => done.push('do'))
      await context.child(nap, { input: null })
    },
    { timeoutMs: HOUR },
  )
  const parent = defineRun('parent', (context) =>
    context.child(run, { input: null, id: 'late' }).catch((error: unknown) => (error as { code: string }).code),
  )
  const engine = await world.engine({ runs: [run, nap, parent] })
  const { start, get, resume, replay, cancel } = engine
  const waiting = await start(parent, { runId: 'p', input: null })
  await untilState(engine, 'late~nap', 'sleeping')
  await world.advance(HOUR)
  await until(
    'it breathes',
    () => get('late'),
    ({ state, cancelledAt }) => state === 'sleeping' && cancelledAt !== null,
  )
  assert.equal((await get('late~nap')).state, 'cancelled', 'its children end with it')
  assert.equal((await get('p')).state, 'sleeping', 'its parent waits for the clean-ups')
  assert.equal(await cancel('late'), false)
  await world.advance(2 * HOUR)
  assert.equal(await waiting.result(), 'child_failed')
  assert.match((await get('late')).failure?.message ?? '', /away/)
  assert.deepEqual(done, ['do', 'first'])
  // Its clean-up failed: that is what a resume takes up. Then the run has no time any more.
  isBroken = false
  await resume('late')
  await until(
    'it has ended',
    () => get('late'),
    ({ endedAt }) => endedAt !== null,
  )
  const { state, failure } = await get('late')
  assert.deepEqual([state, failure?.code, done], ['failed', 'run_timed_out', ['do', 'first', 'second']])
  await assert.rejects(resume('late'), /took too long and has cleaned up/)
  assert.equal((await replay('late')).verdict, 'identical')
})

onEveryRunStore(
  'a run that is cancelled when its body has ended, and its end is not recorded, cleans up',
  async (world) => {
    const done: string[] = []
    const run = defineRun('r', async (context) => {
      await context.onCancel('undo', (cleanUp) => cleanUp.step('undo', () => done.push('undone')))
      await context.step('do', () => done.push('did'))
      return context.uuid()
    })
    const other = await world.engine({ runs: [run], work: false })
    let isCut = false
    const { start, handle } = await world.engine({ runs: [run] }, (store) =>
      watched(store, async (text, send) => {
        if (text.includes('set state = x.state') && !isCut) {
          isCut = true
          assert.equal(await other.cancel('b'), true)
        }
        return send()
      }),
    )
    await start(run, { runId: 'b', input: null })
    await assert.rejects(handle('b').result(), { code: 'run_cancelled' })
    assert.deepEqual(done, ['did', 'undone'])
  },
)

/** Cancels the run once it waits at this step. */
async function cancelBehind({ get, cancel, handle }: Engine, step: string): Promise<void> {
  await until(
    'it waits behind the races',
    () => get('b'),
    ({ state, steps }) => state === 'sleeping' && steps.some(({ id }) => id === step),
  )
  assert.equal(await cancel('b'), true)
  await assert.rejects(handle('b').result(), { code: 'run_cancelled' })
}

onEveryRunStore(
  'clean-ups that branches of a decided race declared run as well, with what came behind them',
  async ({ engine }) => {
    const done: string[] = []
    const book = async (run: RunContext, what: string) => {
      let found: string | null = null
      await run.onCancel(`free ${what}`, (cleanUp) => cleanUp.step('free', () => done.push(`freed ${found}`)))
      found = await run.step(`book ${what}`, () => what)
    }
    const run = defineRun('r', async (context) => {
      for (const turn of ['one', 'two']) {
        await context.race('first', {
          winner: async (branch) => {
            await book(branch, `winner ${turn}`)
            await branch.race('inner', { only: (inside) => book(inside, `inner ${turn}`) })
            await branch.waitFor(`go ${turn}`)
          },
          loser: async (branch) => {
            await book(branch, `loser ${turn}`)
            await branch.sleep('long', HOUR)
          },
        })
      }
      await context.waitFor('paid')
    })
    const made = await engine({ runs: [run] })
    const { start, get, signal, replay } = made
    await start(run, { runId: 'b', input: null })
    for (const turn of ['one', 'two']) {
      await until(
        'the turn has booked',
        () => get('b'),
        ({ state, steps }) =>
          state === 'sleeping' &&
          ['inner', 'loser'].every((what) => steps.some(({ id }) => id.endsWith(`book ${what} ${turn}`))),
      )
      await signal('b', `go ${turn}`, null)
    }
    await cancelBehind(made, 'paid')
    const booked = ['one', 'two'].flatMap((turn) => ['winner', 'inner', 'loser'].map((what) => `freed ${what} ${turn}`))
    assert.deepEqual([...done].sort(), booked.sort())
    assert.equal((await replay('b')).verdict, 'identical')
  },
)

onEveryRunStore('a branch that lost is followed as far as it had come, and no further', async ({ engine }) => {
  const done: string[] = []
  const turns = ['one', 'two']
  const run = defineRun('r', async (context) => {
    for (const turn of turns) {
      await context.race('first', {
        winner: (branch) => branch.waitFor(`go ${turn}`),
        asleep: async (branch) => {
          await branch.onCancel(`asleep ${turn}`, (cleanUp) => cleanUp.step('free', () => done.push(`asleep ${turn}`)))
          await branch.sleep('long', HOUR)
          await branch.step('late', () => done.push('late'))
        },
        passed: async (branch) => {
          // The sleep in `beside` is over when the branch loses, though it has no line for that.
          await branch.all('beside', { nap: (inside) => inside.sleep('nap', 0) })
          await branch.onCancel(`passed ${turn}`, (cleanUp) => cleanUp.step('free', () => done.push(`passed ${turn}`)))
          await branch.waitFor('never')
        },
        acting: async (branch) => {
          await branch.onCancel(`acting ${turn}`, (cleanUp) => cleanUp.step('free', () => done.push(`acting ${turn}`)))
          // Under way, without a line of its own, when its branch loses.
          await branch.step('endless', ({ signal }) => once(signal, 'abort'))
        },
      })
    }
    await context.waitFor('paid')
  })
  const made = await engine({ runs: [run] })
  const { start, get, signal, replay } = made
  await start(run, { runId: 'b', input: null })
  for (const turn of turns) {
    await until(
      'the turn has declared',
      () => get('b'),
      ({ steps }) => steps.filter(({ kind, id }) => kind === 'clean-up' && id.endsWith(turn)).length === 3,
    )
    await signal('b', `go ${turn}`, null)
  }
  await cancelBehind(made, 'paid')
  const declared = turns.flatMap((turn) => [`acting ${turn}`, `asleep ${turn}`, `passed ${turn}`])
  assert.deepEqual(new Set(done), new Set(declared))
  assert.equal(done.length, declared.length)
  assert.equal((await replay('b')).verdict, 'identical')
})
