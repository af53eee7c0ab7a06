import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { final, isOnceError } from 'onceonly'
import type { RunContext } from 'onceonly/run'
import { defineRun, stepKey } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

onEveryRunStore('a signal is taken by one wait only, also by the executions after it', async (world) => {
  const twice = defineRun('twice', async (run) => {
    const first = await run.waitFor<number>('paid')
    await run.sleep('pause', MINUTE)
    return [first, await run.waitFor<number>('paid')]
  })
  const engine = await world.engine({ runs: [twice] })
  const handle = await engine.start(twice, { runId: 't', input: null })
  await engine.signal('t', 'paid', 1)
  await until(
    'the run sleeps, with two steps recorded',
    handle.view,
    ({ state, steps }) => state === 'sleeping' && steps.length === 2,
  )
  await world.advance(MINUTE)
  await until(
    'the run sleeps, with three steps recorded',
    handle.view,
    ({ state, steps }) => state === 'sleeping' && steps.length === 3,
  )
  await engine.signal('t', 'paid', 2)
  const received = (payload: number) => ({ kind: 'received', payload })
  assert.deepEqual(await handle.result(), [received(1), received(2)])
})

onEveryRunStore('a signal that came before a worker took the run is not overlooked', async (world) => {
  const wait = defineRun('wait', (run) => run.waitFor('go'))
  const starter = await world.engine({ runs: [wait], work: false })
  await starter.start(wait, { runId: 'w', input: null })
  await starter.signal('w', 'go', 'now')
  const worker = await world.engine({ runs: [wait] })
  assert.deepEqual(await worker.handle('w').result({ waitMs: 120_000 }), { kind: 'received', payload: 'now' })
})

onEveryRunStore('a race in a loop has a turn each time, also after a recovery', async (world) => {
  const acts: string[] = []
  const turns = defineRun('turns', async (run) => {
    const won: unknown[] = []
    for (let turn = 0; turn < 3; turn++) {
      const first = await run.race('race', {
        quick: async (branch) => {
          const value = await branch.step('act', ({ effectKey: key }) => (acts.push(key), turn))
          await branch.sleep('nap', MINUTE)
          return value
        },
        slow: (branch) => branch.waitFor('never'),
      })
      won.push(first)
    }
    return won
  })
  const engine = await world.engine({ runs: [turns] })
  const handle = await engine.start(turns, { runId: 'r', input: null })
  for (let turn = 1; turn <= 3; turn++) {
    await until(
      `the run sleeps after act ${turn}`,
      handle.view,
      ({ state }) => state === 'sleeping' && acts.length === turn,
    )
    await world.advance(MINUTE)
  }
  assert.deepEqual(
    await handle.result(),
    [0, 1, 2].map((value) => ({ winner: 'quick', value })),
  )
  assert.deepEqual(
    acts,
    [0, 1, 2].map((tick) => stepKey('r', 'race/quick/act', tick)),
  )
  // The waits of the losing branches are abandoned.
  const waits = (await handle.view()).steps.filter(({ id }) => id === 'race/slow/never')
  assert.deepEqual(
    waits.map(({ state, tick }) => [state, tick]),
    [0, 1, 2].map((tick) => ['abandoned', tick]),
  )
  assert.equal((await engine.replay('r')).verdict, 'identical')
})

onEveryRunStore(
  'values created before branches are the same after them, whichever worker drives them',
  async (world) => {
    const seen: Record<string, Set<string>> = { all: new Set(), race: new Set() }
    const fork = defineRun('fork', async (run) => {
      const forAll = run.uuid()
      await run.all('both', {
        act: (branch) => branch.step('act', () => void seen['all']?.add(forAll)),
        rest: (branch) => branch.sleep('rest', MINUTE),
      })
      await run.step('after', () => void seen['all']?.add(forAll))
      const forRace = run.uuid()
      await run.race('first', {
        act: async (branch) => {
          await branch.step('act', () => void seen['race']?.add(forRace))
          await branch.sleep('rest', MINUTE)
        },
      })
      await run.step('end', () => void seen['race']?.add(forRace))
    })
    const engine = await world.engine({ runs: [fork] })
    const handle = await engine.start(fork, { runId: 'f', input: null })
    for (const id of ['both/rest/rest', 'first/act/rest']) {
      await until(
        `the run sleeps, with ${id} recorded`,
        handle.view,
        ({ state, steps }) => state === 'sleeping' && steps.some((step) => step.id === id),
      )
      await world.advance(MINUTE)
    }
    await handle.result()
    assert.deepEqual([seen['all']?.size, seen['race']?.size], [1, 1])
    assert.equal((await engine.replay('f')).verdict, 'identical')
  },
)

onEveryRunStore('code between two steps is not taken for waiting, however long it takes', async (world) => {
  const released = Promise.withResolvers<void>()
  const both = defineRun('both', (run) =>
    run.all('both', {
      patient: (branch) => branch.waitFor('later'),
      busy: async (branch) => {
        await branch.step('one', () => 1)
        await released.promise
        return branch.step('two', () => 2)
      },
    }),
  )
  const engine = await world.engine({ runs: [both] })
  const handle = await engine.start(both, { runId: 'b', input: null })
  await until('two steps are recorded', handle.view, ({ steps }) => steps.length === 2)
  // A moment for an engine that takes it for waiting to put it down; it never is, however long this takes.
  await sleep(100)
  assert.equal((await handle.view()).state, 'running')
  released.resolve()
  await until('both/busy/two is recorded', handle.view, ({ steps }) => steps.some(({ id }) => id === 'both/busy/two'))
  await engine.signal('b', 'later', null)
  await handle.result()
})

onEveryRunStore('a due retry of one branch is not forgotten while another one waits forever', async (world) => {
  let acts = 0
  const both = defineRun('both', (run) =>
    run.all('both', {
      patient: (branch) => branch.waitFor('later'),
      flaky: (branch) =>
        branch.step('flaky', { retry: { backoff: 'fixed', baseMs: MINUTE, attempts: 50 } }, () => {
          acts += 1
          if (acts < 12) throw new Error('not yet')
        }),
    }),
  )
  const engine = await world.engine({ runs: [both] })
  const handle = await engine.start(both, { runId: 'b', input: null })
  for (let attempt = 1; attempt < 12; attempt++) {
    await until(`the run sleeps before it tries again after attempt ${attempt}`, handle.view, ({ state, steps }) => {
      return (
        state === 'sleeping' && steps.some(({ attempts, state: its }) => its === 'retrying' && attempts === attempt)
      )
    })
    await world.advance(MINUTE)
  }
  await until('both/flaky/flaky has succeeded', handle.view, ({ steps }) =>
    steps.some(({ id, state }) => id === 'both/flaky/flaky' && state === 'succeeded'),
  )
  await engine.signal('b', 'later', null)
  await handle.result()
})

onEveryRunStore('resuming tries again what the run stopped at, not what it had dealt with', async (world) => {
  let broken = true
  const acts: string[] = []
  const careful = defineRun('careful', async (run) => {
    const fails = (branch: RunContext, id: string) =>
      branch.step(id, () => {
        acts.push(id)
        if (broken) throw final(new Error(id))
        return id
      })
    const first = await fails(run, 'first').catch(() => run.step('instead', () => 'instead'))
    const second = await run.all('both', { side: (branch) => fails(branch, 'second') }).catch(() => 'without')
    await run.step('between', () => null)
    return [first, second, await fails(run, 'last')]
  })
  const engine = await world.engine({ runs: [careful] })
  const handle = await engine.start(careful, { runId: 'c', input: null })
  await until('the run has failed', handle.view, ({ state }) => state === 'failed')
  broken = false
  await engine.resume('c')
  assert.deepEqual(await handle.result(), ['instead', 'without', 'last'])
  assert.deepEqual(acts, ['first', 'second', 'last', 'last'])
})

onEveryRunStore(
  'branches that are recovered in another order keep their keys; an inserted step changes none',
  async (world) => {
    const keys = new Map<string, Set<string>>()
    const note = (id: string, key: string) => void keys.set(id, (keys.get(id) ?? new Set()).add(key))
    const body =
      (order: readonly string[], inserted: boolean) =>
      async (run: RunContext): Promise<void> => {
        if (inserted && run.version('inserted'))
          await run.step('inserted', ({ effectKey: key }) => note('inserted', key))
        const branch = (name: string) => async (inner: RunContext) => {
          if (name === order[0]) await inner.sleep('late', DAY)
          for (let turn = 0; turn < 2; turn++) {
            await inner.step(
              'send',
              { retry: { backoff: 'fixed', baseMs: DAY } },
              ({ effectKey: key, attemptNumber: attempt }) => {
                note(`${name} ${turn}`, key)
                if (attempt === 1 && !inserted) throw new Error('later')
              },
            )
          }
        }
        await run.all('fan', Object.fromEntries(order.map((name) => [name, branch(name)])))
      }
    const run = defineRun('fan', body(['left', 'right'], false))
    const first = await world.engine({ runs: [run] })
    const handle = await first.start(run, { runId: 'k', input: null })
    await until(
      'the run sleeps, with two steps recorded',
      handle.view,
      ({ state, steps }) => state === 'sleeping' && steps.length === 2,
    )
    await first.stop()
    const second = await world.engine({ runs: [defineRun('fan', body(['left', 'right'], true))] })
    await world.advance(DAY)
    await second.handle('k').result({ waitMs: 120_000 })
    for (const name of ['left', 'right']) {
      for (const turn of [0, 1])
        assert.deepEqual([...(keys.get(`${name} ${turn}`) ?? [])], [stepKey('k', `fan/${name}/send`, turn)])
    }
    assert.ok(!keys.has('inserted'), 'a run that had passed is not led back')
  },
)

onEveryRunStore('a step that appears before branches which the run has begun is a divergence', async (world) => {
  const fan = (run: RunContext) => run.all('fan', { left: (branch) => branch.sleep('rest', MINUTE) })
  const before = defineRun('fan', fan)
  const first = await world.engine({ runs: [before] })
  const handle = await first.start(before, { runId: 'd', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await first.stop()
  let acts = 0
  const after = defineRun('fan', async (run) => {
    await run.step('new', () => ++acts)
    return fan(run)
  })
  const second = await world.engine({ runs: [after] })
  await world.advance(MINUTE)
  const view = await until('the run has failed', second.handle('d').view, ({ state }) => state === 'failed')
  assert.equal(view.failure?.code, 'run_diverged')
  assert.equal(acts, 0)
})

onEveryRunStore(
  'a race that is won before its losers are as far again as they were leaves them behind',
  async (world) => {
    const keys: string[] = []
    let slow = false
    const race = defineRun('race', async (run) => {
      const winners: string[] = []
      for (const turn of [1, 2]) {
        const { winner } = await run.race('first', {
          left: async (branch) => {
            // On replay this branch stops earlier than it did before.
            if (slow) await new Promise<never>(() => {})
            await branch.step('act', ({ effectKey: key }) => void keys.push(key))
            return branch.waitFor('never')
          },
          right: (branch) => branch.waitFor(`go ${turn}`),
        })
        winners.push(await run.step('report', () => winner))
        slow = false
      }
      return winners
    })
    const first = await world.engine({ runs: [race] })
    const handle = await first.start(race, { runId: 'r', input: null })
    await until(
      'the run sleeps after its first call',
      handle.view,
      ({ state }) => state === 'sleeping' && keys.length === 1,
    )
    await first.stop()
    slow = true
    const second = await world.engine({ runs: [race] })
    await second.signal('r', 'go 1', null)
    await until(
      'the run rests after its second call',
      handle.view,
      ({ state }) => state !== 'running' && keys.length === 2,
    )
    await second.signal('r', 'go 2', null)
    assert.deepEqual(await second.handle('r').result({ waitMs: 120_000 }), ['right', 'right'])
    assert.deepEqual(keys, [stepKey('r', 'first/left/act', 0), stepKey('r', 'first/left/act', 1)])
    assert.equal((await second.replay('r')).verdict, 'identical')
  },
)

onEveryRunStore('a run that failed in the middle of a race is replayed as it went', async (world) => {
  for (const readsTime of [true, false]) {
    const lost = defineRun(`lost ${readsTime}`, async (run) => {
      if (readsTime) run.now()
      const fail = () => {
        throw final(new Error('refused'))
      }
      return run.race('first', {
        left: async (branch) => {
          await branch.step('before', () => 1)
          return branch.step('act', fail)
        },
        right: (branch) => branch.step('act', fail),
      })
    })
    const engine = await world.engine({ runs: [lost] })
    const handle = await engine.start(lost, { runId: `l ${readsTime}`, input: null })
    await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_failed'))
    assert.equal((await engine.replay(`l ${readsTime}`)).verdict, 'identical')
    await engine.stop()
  }
})
