import assert from 'node:assert/strict'
import { final } from 'onceonly'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, untilState } from '../../support/runs/world.ts'

const HOUR = 3_600_000

onEveryRunStore(
  'a fork begins at a step of an old run: what came before is copied, the rest is done anew',
  async (world) => {
    const calls: string[] = []
    const defined = (greeting: string) =>
      defineRun('letter', async (run, name: string) => {
        const id = run.uuid()
        const account = await run.step('create', ({ effectKey }) => {
          calls.push('create')
          return effectKey
        })
        await run.step('greet', () => calls.push(`${greeting} ${name}`))
        return [id, account]
      })
    const old = defined('Hello')
    const first = await world.engine({ runs: [old] })
    const before = (await (await first.start(old, { runId: 'one', input: 'Ann' })).result()) as unknown[]
    await first.stop()
    const next = await world.engine({ runs: [defined('Welcome')] })
    assert.equal(await next.fork('one', { runId: 'two', from: 'greet' }), 'two')
    assert.deepEqual(await next.handle('two').result(), before, 'values and results are those of the old run')
    assert.equal(await next.fork('one', { runId: 'three', from: 'greet', input: 'Bob' }), 'three')
    await next.handle('three').result()
    assert.deepEqual(calls, ['create', 'Hello Ann', 'Welcome Ann', 'Welcome Bob'])
    // The same fork again is the same run; another one under its id is refused.
    assert.equal(await next.fork('one', { runId: 'two', from: 'greet' }), 'two')
    assert.equal(calls.length, 4)
    await assert.rejects(next.fork('one', { runId: 'two', from: 'create' }), { code: 'run_conflict' })
    await assert.rejects(next.fork('one', { runId: 'four', from: 'nowhere' }), { code: 'not_found' })
    const { forkedFrom, steps } = await next.get('two')
    assert.equal(forkedFrom?.runId, 'one')
    const keys = (await next.get('one')).steps.map(({ key }) => key)
    assert.ok(steps.every(({ key }) => !keys.includes(key)))
    assert.equal((await next.replay('two')).verdict, 'identical')
  },
)

onEveryRunStore(
  'a fork inside of races and branches keeps what was decided before it, and nothing that was later',
  async (world) => {
    const did: string[] = []
    const step = (name: string) => () => {
      did.push(name)
      return name
    }
    const run = defineRun('r', async (context) => {
      const turns: unknown[] = []
      for (const turn of [1, 2]) {
        context.now()
        const { winner } = await context.race('first', {
          a: async (branch) => {
            await branch.step('a one', step(`a one ${turn}`))
            return branch.step('a two', step(`a two ${turn}`))
          },
          b: (branch) => branch.sleep('b', HOUR),
        })
        turns.push(winner)
      }
      const both = await context.all('both', {
        left: async (branch) => {
          await branch.step('l one', step('l one'))
          return branch.step('l two', step('l two'))
        },
        right: (branch) => branch.step('r one', step('r one')),
      })
      return [turns, both]
    })
    const { start, fork, get, handle } = await world.engine({ runs: [run] })
    const result = await (await start(run, { runId: 'one', input: null })).result()
    did.length = 0
    await fork('one', { runId: 'two', from: 'first/a/a two', tick: 1 })
    assert.deepEqual(await handle('two').result(), result)
    assert.deepEqual([...did].sort(), ['a two 2', 'l one', 'l two', 'r one'])
    did.length = 0
    await fork('one', { runId: 'three', from: 'both/left/l two' })
    assert.deepEqual(await handle('three').result(), result)
    assert.ok(did.includes('l two') && !did.includes('l one'), String(did))
    const [key] = (await get('one')).steps.map((each) => each.key)
    await fork('one', { runId: 'four', from: key ?? '' })
    assert.deepEqual(await handle('four').result(), result)
  },
)

onEveryRunStore('a fork of a run that was cancelled goes another way, and has its clean-ups', async (world) => {
  const freed: string[] = []
  const run = defineRun('r', async (context, ms: number) => {
    await context.onCancel('free', (cleanUp) => cleanUp.step('free', () => freed.push(context.runId)))
    await context.step('book', () => 'booked')
    await context.sleep('wait', ms)
    return 'done'
  })
  const { start, fork, cancel, get, handle } = await world.engine({ runs: [run] })
  await start(run, { runId: 'one', input: HOUR })
  const sleeps = (id: string) =>
    until(
      'it sleeps',
      () => get(id),
      ({ state }) => state === 'sleeping',
    )
  const ends = (id: string) => assert.rejects(handle(id).result(), { code: 'run_cancelled' })
  await sleeps('one')
  await cancel('one')
  await ends('one')
  await fork('one', { runId: 'two', from: 'wait', input: 0 })
  assert.equal(await handle('two').result(), 'done')
  await fork('one', { runId: 'three', from: 'wait' })
  await sleeps('three')
  await cancel('three')
  await ends('three')
  assert.deepEqual(freed, ['one', 'three'])
})

onEveryRunStore('what a fork copies is not compared with what its code and its input would do', async (world) => {
  const sent: unknown[] = []
  const leaf = defineRun('leaf', async (_run, name: string) => name)
  const run = defineRun('r', async (context, name: string) => {
    const planned = { plan: () => ({ name, of: context.runId }), act: (plan: object) => void sent.push(plan) }
    await context.emit('named', name)
    await context.setAttributes({ name })
    await context.step('before', planned)
    await context.step('declared', { input: name }, () => null)
    const child = await context.child(leaf, { input: name })
    await context.step('behind', planned)
    return child
  })
  const { start, fork, handle, replay } = await world.engine({ runs: [run, leaf], checkDeterminism: true })
  assert.equal(await (await start(run, { runId: 'one', input: 'Ann' })).result(), 'Ann')
  await fork('one', { runId: 'two', from: 'behind', input: 'Bob' })
  assert.equal(await handle('two').result(), 'Ann', 'the child has its result')
  assert.deepEqual(sent, [
    { name: 'Ann', of: 'one' },
    { name: 'Ann', of: 'one' },
    { name: 'Bob', of: 'two' },
  ])
  const { verdict, steps } = await replay('two')
  assert.equal(verdict, 'identical')
  assert.deepEqual(
    steps.map(({ id, evaluated }) => [id, evaluated]),
    [
      ['named', false],
      ['attributes', false],
      ['before', false],
      ['declared', false],
      ['leaf', false],
      ['behind', true],
    ],
  )
})

onEveryRunStore('a race beside the step that was decided later is open in the fork', async (world) => {
  const did: string[] = []
  const run = defineRun('r', (context) =>
    context.all('both', {
      left: async (branch) => {
        // The race has a line of its own from its beginning, because of this.
        branch.now()
        const { winner } = await branch.race('first', {
          signal: async (inside) => {
            await inside.waitFor('go')
            return inside.step('won', () => did.push('won'))
          },
          timer: (inside) => inside.sleep('long', HOUR),
        })
        return winner
      },
      right: (branch) => branch.step('beside', () => did.push('beside')),
    }),
  )
  const engine = await world.engine({ runs: [run] })
  const { result } = await engine.start(run, { runId: 'one', input: null })
  await untilState(engine, 'one', 'sleeping')
  await engine.signal('one', 'go', null)
  assert.deepEqual(await result(), { left: 'signal', right: 1 })
  await engine.fork('one', { runId: 'two', from: 'both/right/beside' })
  await untilState(engine, 'two', 'sleeping')
  await world.advance(HOUR)
  assert.deepEqual(await engine.handle('two').result(), { left: 'timer', right: 3 })
  assert.deepEqual(did, ['beside', 'won', 'beside'])
  assert.equal((await engine.replay('two')).verdict, 'identical')
})

onEveryRunStore('a branch that lost later keeps, in the fork, how far it had come', async (world) => {
  const came = new Set<string>()
  const did: string[] = []
  const run = defineRun('r', (context) =>
    context.race('first', {
      left: async (branch) => {
        branch.now()
        await branch.sleep('nap', 0)
        // Neither the one that naps here nor the branches of `calm` leave a line behind.
        await branch.all('beside', {
          one: (inner) => inner.sleep('nap', 0),
          two: (inner) => inner.step('two', () => did.push('two')),
        })
        came.add(branch.uuid())
        // The race inside has a line of its own, which keeps that value.
        const inside = await branch.race('inside', {
          answer: async (inner) => {
            await inner.step('one', () => did.push('one'))
            return inner.waitFor('answer')
          },
          other: (inner) => inner.waitFor('never'),
        })
        return inside.value
      },
      middle: async (branch) => {
        await branch.sleep('nap', 0)
        came.add('calm')
        return branch.race('calm', {
          answer: async (inner) => {
            await inner.step('three', () => did.push('three'))
            return inner.waitFor('answer')
          },
          other: (inner) => inner.waitFor('never'),
        })
      },
      right: async (branch) => {
        await branch.waitFor('go')
        await branch.step('last', async () => {
          await until(
            'the others have come as far',
            () => came.size,
            (count) => count === 2,
          )
          did.push('last')
        })
      },
    }),
  )
  const engine = await world.engine({ runs: [run] })
  const { result } = await engine.start(run, { runId: 'one', input: null })
  await until(
    'both wait for an answer',
    () => engine.get('one'),
    ({ steps }) => steps.filter(({ id }) => id.endsWith('/answer')).length === 2,
  )
  await engine.signal('one', 'go', null)
  assert.equal(((await result()) as { winner: string }).winner, 'right')
  const before = new Set(came)
  assert.deepEqual(new Set(did), new Set(['last', 'one', 'three', 'two']))
  assert.equal(did.length, 4)
  came.clear()
  await engine.fork('one', { runId: 'two', from: 'first/right/last' })
  assert.equal(((await engine.handle('two').result()) as { winner: string }).winner, 'right')
  assert.deepEqual(came, before, 'the value is that of the old run')
  assert.deepEqual(did.slice(4), ['last'], 'and no other step is done again')
  assert.equal((await engine.replay('two')).verdict, 'identical')
})

onEveryRunStore(
  'what failed before the fork, and is resumed in it, is done as its code and input say',
  async (world) => {
    const sent: unknown[] = []
    let isDown = true
    const act = (plan: { readonly to: string; readonly of: string }) => {
      sent.push(plan)
      if (isDown) throw final(new Error('it is down'))
      return plan.to
    }
    const leaf = defineRun('leaf', async (_run, to: string) => {
      if (isDown) throw new Error('it is down')
      return to
    })
    const run = defineRun('r', (context, to: string) =>
      context.all('both', {
        left: async (branch) => {
          const plan = () => ({ to, of: context.runId })
          return branch.step('mail', { plan, act })
        },
        middle: (branch) => branch.child(leaf, { input: to }),
        right: async (branch) => {
          await branch.waitFor('go')
          return branch.step('beside', () => null)
        },
      }),
    )
    const engine = await world.engine({ runs: [run, leaf] })
    await engine.start(run, { runId: 'one', input: 'Ann' })
    await until(
      'two branches failed',
      () => engine.get('one'),
      ({ steps }) => steps.filter(({ state }) => state === 'failed').length === 2,
    )
    await engine.signal('one', 'go', null)
    await untilState(engine, 'one', 'failed')
    await engine.fork('one', { runId: 'two', from: 'both/right/beside', input: 'Bob' })
    await untilState(engine, 'two', 'failed')
    assert.deepEqual(sent, [{ to: 'Ann', of: 'one' }], 'the fork has copied the failures')
    assert.equal((await engine.replay('two')).verdict, 'identical', 'and what was copied is not compared')
    await engine.resume('two')
    await untilState(engine, 'two', 'failed')
    isDown = false
    await engine.resume('two')
    assert.deepEqual(await engine.handle('two').result(), { left: 'Bob', middle: 'Bob', right: null })
    assert.deepEqual(sent.slice(1), [
      { to: 'Bob', of: 'two' },
      { to: 'Bob', of: 'two' },
    ])
    const { verdict, steps } = await engine.replay('two')
    assert.equal(verdict, 'identical')
    assert.deepEqual(
      steps.flatMap(({ id, evaluated }) => (id.endsWith('mail') || id.endsWith('leaf') ? [evaluated] : [])),
      [true, true],
      'what the fork did itself is compared',
    )
    const child = (await engine.get('two')).steps.find(({ kind }) => kind === 'child')
    assert.deepEqual([child?.child, child?.failures.length], ['two~both/middle/leaf', 1])
  },
)
