import assert from 'node:assert/strict'
import { final, isOnceError, notDone } from 'onceonly'
import type { Channel, RunContext } from 'onceonly/run'
import { defineRun, stepKey } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

onEveryRunStore('steps run in order, each under the key of its place, and the result is kept', async (world) => {
  const seen: string[] = []
  const order = defineRun('order', async (run, input: { item: string }) => {
    const a = await run.step('reserve', ({ effectKey: key }) => (seen.push(key), `reserved ${input.item}`))
    for (let turn = 0; turn < 2; turn++) await run.step('notify', ({ effectKey: key }) => void seen.push(key))
    return { a, at: new Date(0) }
  })
  const engine = await world.engine({ runs: [order] })
  const handle = await engine.start(order, { runId: 'o-1', input: { item: 'tea' } })
  assert.deepEqual(await handle.result(), { a: 'reserved tea', at: new Date(0) })
  assert.deepEqual(seen, [stepKey('o-1', 'reserve', 0), stepKey('o-1', 'notify', 0), stepKey('o-1', 'notify', 1)])
  const view = await handle.view()
  assert.equal(view.state, 'succeeded')
  assert.deepEqual(
    view.steps.map(({ id, tick, state, attempts }) => [id, tick, state, attempts]),
    [
      ['reserve', 0, 'succeeded', 1],
      ['notify', 0, 'succeeded', 1],
      ['notify', 1, 'succeeded', 1],
    ],
  )
})

onEveryRunStore('starting is idempotent: one run for one id, a conflict for another input', async (world) => {
  let acts = 0
  const count = defineRun('count', (run, _input: { n: number }) => run.step('act', () => ++acts))
  const [one, two] = [await world.engine({ runs: [count] }), await world.engine({ runs: [count] })]
  const starts = Array.from({ length: 20 }, (_, index) =>
    (index % 2 === 0 ? one : two).start(count, { runId: 'c', input: { n: 1 } }),
  )
  const results = await Promise.all((await Promise.all(starts)).map((handle) => handle.result()))
  assert.deepEqual(new Set(results), new Set([1]))
  assert.equal(acts, 1)
  await assert.rejects(one.start(count, { runId: 'c', input: { n: 2 } }), (error) => isOnceError(error, 'run_conflict'))
  await assert.rejects(one.start(count, { runId: 'c', input: { n: 1 }, ifFinished: 'reject' }), (error) =>
    isOnceError(error, 'run_conflict'),
  )
  const again = await two.start(count, { runId: 'c', input: { n: 1 }, ifFinished: 'restart' })
  assert.equal(again.runId, 'c#2')
  assert.equal(await again.result(), 2)
  assert.equal((await again.view()).restarts, 'c')
})

onEveryRunStore('a failed attempt is tried again under its key, later; a final one never', async (world) => {
  const keys: string[] = []
  const flaky = defineRun('flaky', (run) =>
    run.step('send', { retry: { attempts: 3, backoff: 'fixed', baseMs: MINUTE } }, ({ effectKey: key }) => {
      keys.push(key)
      if (keys.length < 3) throw new Error('not now')
      return 'sent'
    }),
  )
  const refused = defineRun('refused', (run) =>
    run.step('send', () => {
      throw final(new Error('no such address'))
    }),
  )
  const engine = await world.engine({ runs: [flaky, refused] })
  const handle = await engine.start(flaky, { runId: 'f', input: null })
  for (const attempts of [1, 2]) {
    const view = await until(
      `the run sleeps after attempt ${attempts}`,
      handle.view,
      ({ state, steps }) => state === 'sleeping' && steps[0]?.attempts === attempts,
    )
    assert.equal(view.steps[0]?.state, 'retrying')
    await world.advance(MINUTE)
  }
  assert.equal(await handle.result(), 'sent')
  assert.deepEqual(new Set(keys), new Set([stepKey('f', 'send', 0)]))
  assert.equal(keys.length, 3)

  const never = await engine.start(refused, { runId: 'r', input: null })
  await assert.rejects(never.result(), (error) => isOnceError(error, 'run_failed'))
  assert.equal((await never.view()).steps[0]?.attempts, 1)
})

onEveryRunStore('Retry-After is honoured, and exhausted attempts fail the run with their history', async (world) => {
  const busy = defineRun('busy', (run) =>
    run.step('send', { retry: { attempts: 2 } }, () => {
      throw notDone(new Error('busy'), { retryAfterMs: 5 * MINUTE })
    }),
  )
  const engine = await world.engine({ runs: [busy] })
  const handle = await engine.start(busy, { runId: 'b', input: null })
  const waiting = await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  assert.ok((waiting.dueAt ?? 0) - waiting.startedAt >= 5 * MINUTE)
  await world.advance(5 * MINUTE)
  await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_failed'))
  assert.deepEqual(
    (await handle.view()).steps[0]?.failures.map(({ attempt, message }) => [attempt, message]),
    [
      [1, 'busy'],
      [2, 'busy'],
    ],
  )
})

onEveryRunStore('a sleep of two days survives the engine, and steps before it are not done again', async (world) => {
  let acts = 0
  const slow = defineRun('slow', async (run) => {
    await run.step('first', () => void acts++)
    await run.sleep('cool-off', 2 * DAY)
    return run.step('second', () => acts)
  })
  const one = await world.engine({ runs: [slow] })
  const handle = await one.start(slow, { runId: 's', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await one.stop()
  const two = await world.engine({ runs: [slow] })
  await world.advance(2 * DAY)
  assert.equal(await two.handle('s').result(), 1)
  assert.equal(acts, 1)
})

onEveryRunStore(
  'an `once` step without a recorded end is unknown, and continues after an operator resolved it',
  async (world) => {
    let acts = 0
    const letter = defineRun('letter', (run) =>
      run.step('post', { semantics: 'once' }, () => {
        acts++
        throw new Error('the line went dead')
      }),
    )
    const engine = await world.engine({ runs: [letter] })
    const handle = await engine.start(letter, { runId: 'l', input: null })
    const view = await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
    assert.deepEqual(
      (await engine.list({ state: 'unknown' })).runs.map(({ runId }) => runId),
      ['l'],
    )
    await assert.rejects(engine.resolve('l', 'nonsense', { kind: 'not_done' }), (error) =>
      isOnceError(error, 'not_resolvable'),
    )
    await engine.resolve('l', view.steps[0]?.key ?? '', { kind: 'succeeded', result: 'posted' })
    assert.equal(await handle.result(), 'posted')
    assert.equal(acts, 1)
    // A known outcome cannot be resolved again.
    for (const late of [{ kind: 'not_done' }, { kind: 'failed', error: 'no' }] as const) {
      await assert.rejects(engine.resolve('l', view.steps[0]?.key ?? '', late), (error) =>
        isOnceError(error, 'not_resolvable'),
      )
    }
    assert.deepEqual((await handle.view()).steps[0]?.state, 'succeeded')
  },
)

onEveryRunStore('what may not be repeated blindly is on record before it is done', async (world) => {
  const seen: unknown[] = []
  const look = async (id: string) => {
    const step = (await elsewhere.get('i')).steps.find((each) => each.id === id)
    seen.push([id, step?.state, step?.plan])
    return id
  }
  const channel: Channel<string, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: true, keepsFailures: false },
    send: () => look('compared'),
  }
  const acting = defineRun('acting', async (run) => {
    await run.step('keyed', () => look('keyed'))
    await run.step('once', { semantics: 'once' }, () => look('once'))
    const verify = async () => ({ kind: 'unknown' as const })
    await run.step('verify', { semantics: 'verify', verify }, () => look('verify'))
    await run.step('compared', { channel }, () => 'Dear Ann')
  })
  const elsewhere = await world.engine({ runs: [acting], work: false })
  const engine = await world.engine({ runs: [acting] })
  await (await engine.start(acting, { runId: 'i', input: null })).result()
  assert.deepEqual(seen, [
    ['keyed', undefined, undefined],
    ['once', 'intent', undefined],
    ['verify', 'intent', undefined],
    ['compared', 'intent', 'Dear Ann'],
  ])
})

onEveryRunStore('a transactional step and its writes commit together, or not at all', async (world) => {
  const store = world.store()
  await store.sql?.query('create table letters (id text primary key)')
  let fails = true
  const write = defineRun('write', (run) =>
    run.step(
      'write',
      { semantics: 'transactional', retry: { backoff: 'fixed', baseMs: MINUTE } },
      async ({ tx, effectKey: key }) => {
        await tx.query('insert into letters (id) values (?)', [key])
        if (fails) throw new Error('after the write')
        return key
      },
    ),
  )
  const engine = await world.engine({ runs: [write] })
  const handle = await engine.start(write, { runId: 'w', input: null })
  await until('the first step was tried', handle.view, ({ steps }) => (steps[0]?.attempts ?? 0) > 0)
  assert.deepEqual(await store.sql?.query('select id from letters'), [])
  fails = false
  await world.advance(MINUTE)
  const key = await handle.result()
  assert.deepEqual(await store.sql?.query('select id from letters'), [{ id: key }])
})

onEveryRunStore('signals wake a run, once for each id; a wait may time out', async (world) => {
  const pay = defineRun('pay', async (run) => [
    await run.waitFor('paid'),
    await run.waitFor('shipped', { timeoutMs: DAY }),
  ])
  const engine = await world.engine({ runs: [pay] })
  const handle = await engine.start(pay, { runId: 'p', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  assert.equal(await engine.signal('p', 'paid', { amount: 7 }, { id: 'evt-1' }), true)
  assert.equal(await engine.signal('p', 'paid', { amount: 7 }, { id: 'evt-1' }), false)
  await until(
    'the run sleeps, with two steps recorded',
    handle.view,
    ({ steps, state }) => state === 'sleeping' && steps.length === 2,
  )
  await world.advance(DAY)
  assert.deepEqual(await handle.result(), [{ kind: 'received', payload: { amount: 7 } }, { kind: 'timed_out' }])
})

onEveryRunStore('branches keep their keys, and the winner of a race stays the winner', async (world) => {
  const fork = defineRun('fork', async (run) => {
    const both = await run.all('fanout', {
      left: (branch) => branch.step('send', ({ effectKey: key }) => key),
      right: async (branch) => {
        await branch.sleep('rest', MINUTE)
        return branch.step('send', ({ effectKey: key }) => key)
      },
    })
    const first = await run.race('first', {
      sleeper: async (branch) => {
        await branch.sleep('long', DAY)
        return 'sleeper'
      },
      worker: (branch) => branch.step('work', () => 'worker'),
    })
    return { both, first }
  })
  const engine = await world.engine({ runs: [fork] })
  const handle = await engine.start(fork, { runId: 'k', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await world.advance(MINUTE)
  assert.deepEqual(await handle.result(), {
    both: { left: stepKey('k', 'fanout/left/send', 0), right: stepKey('k', 'fanout/right/send', 0) },
    first: { winner: 'worker', value: 'worker' },
  })
})

onEveryRunStore('a second step of one branch at the same time is refused, and names `run.all`', async (world) => {
  const wrong = defineRun('wrong', (run) => Promise.all([run.step('one', () => 1), run.step('two', () => 2)]))
  const engine = await world.engine({ runs: [wrong] })
  const handle = await engine.start(wrong, { runId: 'x', input: null })
  await assert.rejects(handle.result(), /run\.all/)
})

onEveryRunStore(
  'recorded values come back, and a step that differs from the record is reported with both sides',
  async (world) => {
    const values: unknown[] = []
    let second = 'second'
    const code = defineRun('code', async (run) => {
      values.push([run.now(), run.random(), run.uuid(), run.version('colour')])
      await run.step('first', () => 1)
      await run.sleep('pause', MINUTE)
      return run.step(second, () => {
        throw new Error('not yet')
      })
    })
    const engine = await world.engine({ runs: [code] })
    const handle = await engine.start(code, { runId: 'v', input: null })
    await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
    await world.advance(MINUTE)
    await until('the third step is to be tried again', handle.view, ({ steps }) => steps[2]?.state === 'retrying')
    assert.deepEqual(values[1], values[0])
    second = 'another'
    await world.advance(DAY)
    const view = await until('the run has failed', handle.view, ({ state }) => state === 'failed')
    assert.match(view.failure?.message ?? '', /second.*another/)
    assert.equal(view.failure?.code, 'run_diverged')
    second = 'second'
    await engine.resume('v')
    await until('the third step was tried twice', handle.view, ({ steps }) => (steps[2]?.attempts ?? 0) > 1)
  },
)

onEveryRunStore('a cancelled run records nothing more, and its step is aborted', async (world) => {
  const began = Promise.withResolvers<AbortSignal>()
  const long = defineRun('long', (run) =>
    run.step('wait', ({ signal }) => {
      began.resolve(signal)
      return new Promise<never>(() => {})
    }),
  )
  const engine = await world.engine({ runs: [long], leaseMs: 1_000 })
  const handle = await engine.start(long, { runId: 'z', input: null })
  await began.promise
  assert.equal(await engine.cancel('z'), true)
  assert.equal(await engine.cancel('z'), false)
  await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_cancelled'))
  assert.deepEqual((await handle.view()).steps, [])
})

onEveryRunStore('a listener that throws changes nothing', async (world) => {
  const quiet = defineRun('quiet', (run) => run.step('act', () => 'done'))
  const engine = await world.engine({
    runs: [quiet],
    on: () => {
      throw new Error('a listener of theirs')
    },
  })
  assert.equal(await (await engine.start(quiet, { runId: 'q', input: null })).result(), 'done')
})

onEveryRunStore(
  'times and counts that are no numbers are refused with words, and parts of a millisecond are not',
  async (world) => {
    const act = () => 'done'
    const wrong: Readonly<Record<string, (run: RunContext) => Promise<unknown>>> = {
      timeoutMs: (run) => run.step('act', { timeoutMs: Number.POSITIVE_INFINITY }, act),
      attempts: (run) => run.step('act', { retry: { attempts: Number.NaN } }, act),
      'attempts, none': (run) => run.step('act', { retry: { attempts: 0 } }, act),
      baseMs: (run) => run.step('act', { retry: { baseMs: Number.NaN } }, act),
      capMs: (run) => run.step('act', { retry: { capMs: -1 } }, act),
      'timeoutMs of a wait': (run) => run.waitFor('go', { timeoutMs: Number.NaN }),
      sleep: (run) => run.sleep('moment', Number.NaN),
    }
    const runs = Object.entries(wrong).map(([name, body]) => ({ name, run: defineRun(name.replace(',', ''), body) }))
    const fine = defineRun('fine', async (run) => {
      await run.sleep('moment', 0.5)
      const { kind } = await run.waitFor('go', { timeoutMs: 0.5 })
      let acts = 0
      return run.step('act', { retry: { attempts: Number.POSITIVE_INFINITY, backoff: 'fixed', baseMs: 0.5 } }, () => {
        if (++acts < 3) throw notDone(new Error('not yet'))
        return kind
      })
    })
    const engine = await world.engine({ runs: [fine, ...runs.map(({ run }) => run)] })
    for (const { name, run } of runs) {
      const handle = await engine.start(run, { runId: name, input: null })
      await assert.rejects(handle.result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
      assert.equal((await handle.view()).failure?.code, 'bad_option', name)
    }
    assert.equal(await (await engine.start(fine, { runId: 'f', input: null })).result({ waitMs: 120_000 }), 'timed_out')
  },
)

onEveryRunStore('a step has the context of every effect, and derives no key once its time is up', async (world) => {
  const seen: unknown[] = []
  const slow = defineRun('slow', (run) =>
    run.step('act', { timeoutMs: 1, retry: { attempts: 1 } }, async (context) => {
      seen.push(Object.keys(context).sort(), context.attemptNumber, context.fence > 0, context.derive('mail') !== '')
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }))
      assert.throws(() => context.derive('mail'), context.signal.reason as Error)
      seen.push('refused')
    }),
  )
  const engine = await world.engine({ runs: [slow] })
  await engine.start(slow, { runId: 's', input: null })
  const members = ['attemptNumber', 'derive', 'effectKey', 'fence', 'signal']
  await until(
    'the step was refused',
    () => seen.length,
    (length) => length === 5,
  )
  assert.deepEqual(seen, [members, 1, true, true, 'refused'])
})
