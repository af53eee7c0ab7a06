import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Engine, RunContext } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore, watched } from '../../support/runs/world.ts'

const MINUTE = 60_000
const once = { semantics: 'once' } as const

/** As if the worker of every run were dead by the clock of the store alone. */
const TAKE_AWAY = 'update onceonly_runs set worker = null, fence = fence + 1, due_at = 0 where ended_at is null'
/** The next heartbeat, by which a worker notices a lost run, is minutes away, and it has no room to take it again. */
const unknowing = { leaseMs: 20 * MINUTE, concurrency: 1 }

/** Two letters, each of which must not be sent twice; the second one is sent by `send`. */
function letters(send: () => unknown, between: (run: RunContext) => unknown = () => undefined) {
  return defineRun('letters', async (run, number: number) => {
    await run.step('first', once, () => 'sent')
    if (number > 0) await between(run)
    return run.step('second', once, () => (number === 0 ? 'sent' : send()))
  })
}

/** A first run, from which the process learns what comes behind what. */
async function learn(engine: Engine, run: ReturnType<typeof letters>): Promise<void> {
  await (await engine.start(run, { runId: 'r-0', input: 0 })).result()
}

/** The states of the steps while the second letter is being sent. */
async function whileSending(world: RunWorld, between?: (run: RunContext) => unknown) {
  const elsewhere = await world.engine({ runs: [], work: false })
  const run = letters(async () => (await elsewhere.get('r-1')).steps.map(({ state }) => state), between)
  const engine = await world.engine({ runs: [run] })
  await learn(engine, run)
  return await (await engine.start(run, { runId: 'r-1', input: 1 })).result()
}

onEveryRunStore(
  'steps that must not be repeated share their commits, once it is known that they follow',
  async (world) => {
    const run = defineRun('three', async (context) => {
      for (const id of ['a', 'b', 'c']) await context.step(id, once, () => id)
    })
    const writes = { count: 0 }
    const engine = await world.engine({ runs: [run] }, (store) =>
      watched(store, (text, send) => {
        if (text.includes('insert into onceonly_run_steps')) writes.count += 1
        return send()
      }),
    )
    const counts: number[] = []
    for (const runId of ['r-0', 'r-1']) {
      writes.count = 0
      await (await engine.start(run, { runId, input: null })).result()
      counts.push(writes.count)
    }
    // An intent and a record each; then one intent for the first, and the records.
    assert.deepEqual(counts, [6, 4])
  },
)

onEveryRunStore('a step that was announced when its worker died is unknown, and is not done again', async (world) => {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  let sends = 0
  const run = letters(() => {
    sends += 1
    begun.resolve()
    return released.promise
  })
  const first = await world.engine({ runs: [run], ...unknowing })
  await learn(first, run)
  await first.start(run, { runId: 'r-1', input: 1 })
  await begun.promise
  assert.deepEqual(
    (await first.get('r-1')).steps.map(({ id, state }) => [id, state]),
    [['first', 'succeeded']],
  )
  await world.store().sql.query(TAKE_AWAY)
  const second = await world.engine({ runs: [run] })
  const view = await until(
    'its outcome is unknown',
    () => second.get('r-1'),
    ({ state }) => state === 'unknown',
  )
  assert.deepEqual(
    view.steps.map(({ id, state }) => [id, state]),
    [
      ['first', 'succeeded'],
      ['second', 'unknown'],
    ],
  )
  await second.resolve('r-1', view.steps[1]?.key ?? '', { kind: 'succeeded', result: 'found' })
  assert.equal(await second.handle('r-1').result(), 'found')
  assert.equal(sends, 1)
  released.resolve('late')
})

onEveryRunStore(
  'a step that was announced and not begun is not in doubt when its run was handed over',
  async (world) => {
    const engines: Engine[] = []
    const run = defineRun('pair', async (context, number: number) => {
      await context.step('first', once, () => void (number === 1 ? engines[0]?.stop() : null))
      return context.step('second', once, () => 'sent')
    })
    engines.push(await world.engine({ runs: [run] }))
    await (await engines[0]?.start(run, { runId: 'r-0', input: 0 }))?.result()
    await engines[0]?.start(run, { runId: 'r-1', input: 1 })
    const [line] = await until(
      'the first step is recorded',
      () =>
        world
          .store()
          .sql.query<{ leads_to: string }>(
            "select leads_to from onceonly_run_steps where run_id = 'r-1' and state = 'succeeded'",
          ),
      ({ length }) => length > 0,
    )
    assert.equal(line?.leads_to, 'second')
    const second = await world.engine({ runs: [run] })
    assert.equal(await second.handle('r-1').result(), 'sent')
  },
)

onEveryRunStore('a step that is announced in the turn in which it begins needs no intent of its own', async (world) => {
  assert.deepEqual(await whileSending(world), ['succeeded'])
})

onEveryRunStore('a value that the body asked for is on record before a step that may depend on it', async (world) => {
  assert.deepEqual(await whileSending(world, (run) => run.uuid()), ['succeeded', 'intent'])
})

onEveryRunStore('a step that begins later than the line before it was written has its own intent', async (world) => {
  assert.deepEqual(await whileSending(world, nextTurn), ['succeeded', 'intent'])
})

onEveryRunStore(
  'a step that was announced and that a failed run left behind is in doubt when it is resumed',
  async (world) => {
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
    let sends = 0
    let fails = true
    const run = defineRun('careless', async (context, number: number) => {
      await context.step('first', once, () => 'sent')
      const second = context.step('second', once, () => {
        if (number === 0) return 'sent'
        sends += 1
        begun.resolve()
        return released.promise
      })
      if (number === 0 || !fails) return second
      await begun.promise
      throw new Error('it did not wait for its step')
    })
    const engine = await world.engine({ runs: [run] })
    await (await engine.start(run, { runId: 'r-0', input: 0 })).result()
    await assert.rejects((await engine.start(run, { runId: 'r-1', input: 1 })).result(), /did not wait/)
    fails = false
    await engine.resume('r-1')
    await until(
      'its outcome is unknown',
      () => engine.get('r-1'),
      ({ state }) => state === 'unknown',
    )
    assert.equal(sends, 1)
    released.resolve('late')
  },
)

onEveryRunStore('a run whose worker died in an announced step keeps to the way that it went', async (world) => {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  let sends = 0
  const run = (change: (context: RunContext) => Promise<unknown>) =>
    defineRun('changing', async (context, number: number) => {
      await context.step('first', once, () => 'sent')
      await change(context)
      return context.step('second', once, () => {
        if (number === 0) return 'sent'
        sends += 1
        begun.resolve()
        return released.promise
      })
    })
  const before = run(async () => undefined)
  const first = await world.engine({ runs: [before], ...unknowing, concurrency: 2 })
  await (await first.start(before, { runId: 'r-0', input: 0 })).result()
  for (const runId of ['guarded', 'careless']) await first.start(before, { runId, input: 1 })
  await begun.promise
  await until(
    'both have begun',
    () => sends,
    (count) => count === 2,
  )
  await world.store().sql.query(TAKE_AWAY)
  // Code that knows the change leaves the run on its old way; code that forgot to ask must not send again either.
  const after = run(async (context) => {
    const isNew = context.runId === 'guarded' ? context.version('check') : true
    if (isNew) await context.sleep('check', 1)
  })
  const second = await world.engine({ runs: [after] })
  const steps = async (runId: string) => {
    const view = await until(
      `${runId} is unknown`,
      () => second.get(runId),
      ({ state }) => state === 'unknown',
    )
    return view.steps.map(({ id, state }) => `${id} ${state}`)
  }
  assert.deepEqual(await steps('guarded'), ['first succeeded', 'second unknown'])
  assert.deepEqual(await steps('careless'), ['first succeeded', 'check waiting', 'second unknown'])
  assert.equal(sends, 2)
  released.resolve('late')
})

onEveryRunStore('what does not always follow is not announced', async (world) => {
  const run = defineRun('either', async (context, number: number) => {
    await context.step('first', once, () => 'sent')
    return number === 1 ? context.step('other', () => 'kept') : context.step('second', once, () => 'sent')
  })
  const engine = await world.engine({ runs: [run] })
  for (let number = 0; number < 3; number++) {
    await (await engine.start(run, { runId: `r-${number}`, input: number })).result()
  }
  const lines = await world
    .store()
    .sql.query("select run_id, leads_to from onceonly_run_steps where step_id = 'first' order by run_id")
  assert.deepEqual(
    lines.map((line) => line['leads_to']),
    [null, 'second', null],
  )
})
