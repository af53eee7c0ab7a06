import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { RunContext } from 'onceonly/run'
import { defineQueue, defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const HOUR = 3_600_000

onEveryRunStore('a child runs once under its own id, and its result is a step of its parent', async ({ engine }) => {
  const double = defineRun('double', (run, n: number) => run.step('double', () => n * 2))
  const parent = defineRun('parent', async (run) => {
    const one = await run.child(double, { input: 1 })
    const two = await run.child(double, { input: one })
    const { left } = await run.all('fan', { left: (branch) => branch.child(double, { input: 5, id: 'named' }) })
    return [one, two, left]
  })
  const { start, get } = await engine({ runs: [parent, double] })
  const handle = await start(parent, { runId: 'p', input: null })
  assert.deepEqual(await handle.result(), [2, 4, 10])
  const children = (await handle.view()).steps.filter(({ kind }) => kind === 'child')
  assert.deepEqual(
    children.map(({ id, child, result }) => [id, child, result]),
    [
      ['double', 'p~double', 2],
      ['double', 'p~double,2', 4],
      ['fan/left/double', 'named', 10],
    ],
  )
  assert.equal((await get('p~double')).parent, 'p')
})

onEveryRunStore(
  'a child that fails, fails its parent, and both go on when the parent is resumed',
  async ({ engine }) => {
    let isBroken = true
    let calls = 0
    const ship = defineRun('ship', (run) =>
      run.step('ship', { retry: { attempts: 1 }, semantics: 'transactional' }, async () => {
        calls += 1
        if (isBroken) throw new Error('no lorry')
        return 'shipped'
      }),
    )
    const order = defineRun('order', async (run) => {
      await run.step('pay', () => 'paid')
      return run.child(ship, { input: null })
    })
    const { start, resume, get } = await engine({ runs: [order, ship] })
    const handle = await start(order, { runId: 'o', input: null })
    await assert.rejects(handle.result(), { code: 'run_failed' })
    const { failure } = await handle.view()
    assert.equal(failure?.code, 'child_failed')
    assert.match(failure?.message ?? '', /no lorry/)
    assert.equal((await get('o~ship')).state, 'failed')
    isBroken = false
    await resume('o')
    assert.equal(await handle.result(), 'shipped')
    assert.equal(calls, 2)
    assert.equal((await get('o~ship')).state, 'succeeded')
  },
)

onEveryRunStore(
  'a cancel passes down to children, unless they are to continue; a resume takes them up again',
  async (world) => {
    const nap = defineRun('nap', async (run, hours: number) => {
      await run.sleep('nap', hours * HOUR)
      return 'rested'
    })
    const middle = defineRun('middle', (run) => run.child(nap, { input: 1 }))
    const top = defineRun('top', (run) =>
      run.all('both', {
        bound: (branch) => branch.child(middle, { input: null }),
        free: (branch) => branch.child(nap, { input: 1, id: 'free', ifParentEnds: 'continue' }),
      }),
    )
    const { start, get, cancel, resume } = await world.engine({ runs: [top, middle, nap] })
    const handle = await start(top, { runId: 't', input: null })
    const leaf = 't~both/bound/middle~nap'
    const states = async () =>
      [await get('t'), await get('t~both/bound/middle'), await get(leaf), await get('free')].map(({ state }) => state)
    await until(
      'all wait',
      () => states().catch(() => []),
      (all) => all.length === 4 && all.every((each) => each === 'sleeping'),
    )
    assert.equal(await cancel('t'), true)
    assert.deepEqual(await states(), ['cancelled', 'cancelled', 'cancelled', 'sleeping'])
    await resume('t')
    await until(
      'the leaf continues',
      () => get(leaf),
      ({ state }) => state === 'sleeping',
    )
    await world.advance(2 * HOUR)
    assert.deepEqual(await handle.result(), { bound: 'rested', free: 'rested' })
  },
)

onEveryRunStore(
  'children race with sleeps, signals and steps; the child of a lost branch is cancelled',
  async (world) => {
    const nap = defineRun('nap', (run, ms: number) => run.sleep('nap', ms))
    const race = (ms: number) => (run: RunContext) =>
      run.race('first', {
        child: (branch) => branch.child(nap, { input: ms }),
        signal: (branch) => branch.waitFor('go'),
        timer: (branch) => branch.sleep('timer', HOUR),
      })
    const slow = defineRun('slow', async (run) => (await race(3 * HOUR)(run)).winner)
    const quick = defineRun('quick', async (run) => (await race(0)(run)).winner)
    const { start, get, signal } = await world.engine({ runs: [slow, quick, nap] })
    assert.equal(await (await start(quick, { runId: 'q', input: null })).result(), 'child')
    const handle = await start(slow, { runId: 's', input: null })
    const signalled = await start(slow, { runId: 'g', input: null })
    for (const id of ['s', 'g'])
      await until(
        'it naps',
        () => get(`${id}~first/child/nap`).catch(() => null),
        (view) => view?.state === 'sleeping',
      )
    await signal('g', 'go', null)
    assert.equal(await signalled.result(), 'signal')
    assert.equal((await get('g~first/child/nap')).state, 'cancelled')
    await until(
      'it sleeps',
      () => handle.view(),
      ({ state }) => state === 'sleeping',
    )
    await world.advance(2 * HOUR)
    assert.equal(await handle.result(), 'timer')
    assert.equal((await get('s~first/child/nap')).state, 'cancelled')
  },
)

onEveryRunStore('a child whose id another run has is refused, and the parent may catch it', async (world) => {
  const leaf = defineRun('leaf', async () => 'leaf')
  const parent = defineRun('parent', (run) =>
    run.child(leaf, { input: null, id: 'taken' }).catch((error: unknown) => (error as { code: string }).code),
  )
  const { start } = await world.engine({ runs: [parent, leaf] })
  await (await start(leaf, { runId: 'taken', input: null })).result()
  assert.equal(await (await start(parent, { runId: 'p', input: null })).result(), 'run_conflict')
})

onEveryRunStore('a dry replay starts no child, and shows another input of one', async (world) => {
  const leaf = defineRun('leaf', async (_run, n: number) => n)
  const parentOf = (n: number) => defineRun('parent', (run) => run.child(leaf, { input: n }))
  const parent = parentOf(1)
  const first = await world.engine({ runs: [parent, leaf] })
  assert.equal(await (await first.start(parent, { runId: 'p', input: null })).result(), 1)
  assert.equal((await first.replay('p')).verdict, 'identical')
  const next = await world.engine({ runs: [parentOf(2), leaf], work: false })
  const { verdict, steps, performed } = await next.replay('p')
  assert.equal(verdict, 'diverged')
  assert.equal(performed, 0)
  assert.deepEqual(steps[0]?.diff, [{ path: '$.input', original: 1, replayed: 2 }])
})

onEveryRunStore(
  'children wait in a queue, within its limits, and a cancel of their parent empties it',
  async (world) => {
    const one = defineQueue('one', { concurrency: 1 })
    const nap = defineRun('nap', async (run, minutes: number) => {
      await run.sleep('nap', minutes * 60_000)
      return minutes
    })
    const parent = defineRun('parent', (run) => {
      const child = (input: number, priority: number) => (branch: RunContext) =>
        branch.child(nap, { input, queue: one, key: 'k', priority })
      return run.all('naps', { late: child(1, 1), early: child(2, 5) })
    })
    const { start, get, queues, cancel, list } = await world.engine({ runs: [parent, nap], queues: [one] })
    const states = async (id: string) =>
      Promise.all(['early', 'late'].map(async (name) => (await get(`${id}~naps/${name}/nap`)).state))
    const counts = async () => (await queues.list()).map(({ waiting, running }) => [waiting, running])
    const handle = await start(parent, { runId: 'p', input: null })
    await until('the first one has its place', counts, (found) => isDeepStrictEqual(found, [[1, 1]]))
    // Asked once: it falls asleep between two questions.
    const { runs } = await list({ queue: 'one' })
    assert.equal(runs.filter(({ state }) => state === 'sleeping' || state === 'running').length, 1)
    await world.advance(3 * 60_000)
    await until('the second one has it', counts, (found) => isDeepStrictEqual(found, [[0, 1]]))
    await world.advance(3 * 60_000)
    assert.deepEqual(await handle.result(), { late: 1, early: 2 })
    assert.deepEqual(await states('p'), ['succeeded', 'succeeded'])

    await start(parent, { runId: 'q', input: null })
    await until('one has its place', counts, (found) => isDeepStrictEqual(found, [[1, 1]]))
    await cancel('q')
    await until('the queue is empty', counts, (found) => isDeepStrictEqual(found, [[0, 0]]))
    assert.deepEqual(await states('q'), ['cancelled', 'cancelled'])
  },
)

onEveryRunStore(
  'a child in a queue that its process does not have, or a key without one, is refused',
  async (world) => {
    const nap = defineRun('nap', async () => null)
    const parent = defineRun('parent', (run, options: object) => run.child(nap, { input: null, ...options } as never))
    const { start } = await world.engine({ runs: [parent, nap], queues: [defineQueue('mail')] })
    const cases: readonly [options: object, text: RegExp][] = [
      [{ queue: 'mial' }, /queue mial is not registered: did you mean `mail`/],
      [{ key: 'k' }, /`key` is for a child with a `queue`/],
      [{ priority: 1 }, /`priority` is for a child with a `queue`/],
    ]
    for (const [input, text] of cases) {
      const handle = await start(parent, { runId: JSON.stringify(input), input })
      await assert.rejects(handle.result(), (error: Error) => text.test(error.message))
    }
  },
)

onEveryRunStore('a child that was removed fails its parent, which would wait forever', async (world) => {
  const wait = defineRun('wait', (run) => run.waitFor('never'))
  const parent = defineRun('parent', (run) => run.child(wait, { input: null }))
  const { start, get, signal } = await world.engine({ runs: [parent, wait] })
  const handle = await start(parent, { runId: 'p', input: null })
  await until(
    'the child waits',
    async () => (await get('p~wait').catch(() => null))?.state,
    (state) => state === 'sleeping',
  )
  await world.store().sql.query("delete from onceonly_runs where id = 'p~wait'")
  await signal('p', 'look', null)
  await assert.rejects(handle.result(), { message: /The child p~wait was removed from the store/ })
})
