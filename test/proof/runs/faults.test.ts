import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOnceError, notDone, OnceError, type SqlStore } from 'onceonly'
import type { Channel } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { limits } from '../../../src/ledger/core/limits.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, watched } from '../../support/runs/world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const away = () => new OnceError('store_unavailable', 'The connection was cut.', { applied: 'maybe' })

/** The first statement that fits takes effect, and its answer is lost. */
function losing(fits: RegExp): (store: SqlStore) => SqlStore {
  let lost = false
  return (store) =>
    watched(store, async (text, send) => {
      if (lost || !fits.test(text)) return await send()
      lost = true
      await send()
      throw away()
    })
}

/** A few, so that more than one part of the engine meets them. */
const REFUSED = 5

/** Short, because tests wait for it, and longer than a busy machine pauses. */
const short = { leaseMs: 3_000, pollMs: 20 }

onEveryRunStore('a start whose answer was lost is driven all the same', async (world) => {
  const one = defineRun('one', (run) => run.step('act', () => 'done'))
  const engine = await world.engine({ runs: [one], ...short }, losing(/^insert into onceonly_runs/))
  await assert.rejects(engine.start(one, { runId: 's', input: null }), (error) =>
    isOnceError(error, 'store_unavailable'),
  )
  const handle = await engine.start(one, { runId: 's', input: null })
  assert.equal(await handle.result({ waitMs: 120_000 }), 'done')
})

for (const [what, fits] of [
  ['taking', /takeovers < \d/],
  ['a journal', /^select .* from onceonly_run_steps where run_id/s],
  ['leaving', /set state = x\.state/],
  ['a step', /insert into onceonly_run_steps/],
] as const) {
  onEveryRunStore(`a run is not forgotten when the answer about ${what} was lost`, async (world) => {
    let acts = 0
    const one = defineRun('one', async (run) => {
      await run.sleep('moment', 1)
      return run.step('act', () => ++acts)
    })
    const starter = await world.engine({ runs: [one], work: false })
    const handle = await starter.start(one, { runId: 'r', input: null })
    await world.engine({ runs: [one], ...short }, losing(fits))
    assert.equal(await handle.result({ waitMs: 120_000 }), 1)
    assert.equal(acts, 1)
  })
}

onEveryRunStore('a heartbeat puts down no run whose taking is still being answered', async (world) => {
  let acts = 0
  const one = defineRun('one', (run) => run.step('act', () => ++acts))
  const starter = await world.engine({ runs: [one], work: false })
  const handle = await starter.start(one, { runId: 'r', input: null })
  const beaten = Promise.withResolvers<void>()
  let taken = false
  await world.engine({ runs: [one], leaseMs: 6_000 }, (store) =>
    watched(store, async (text, send) => {
      const answer = await send()
      if (/set worker = \?/.test(text) && Array.isArray(answer) && answer.length > 0) {
        taken = true
        await beaten.promise
        // A chance for the heartbeat to do what it would do about it.
        await sleep(50)
      }
      if (taken && text.startsWith('select id, fence from onceonly_runs where worker')) beaten.resolve()
      return answer
    }),
  )
  assert.equal(await handle.result({ waitMs: 120_000 }), 1)
  assert.deepEqual([acts, world.events.filter(({ kind }) => kind === 'lost')], [1, []])
})

onEveryRunStore('a store that is away for a while fails no run', async (world) => {
  let down = false
  let refused = 0
  const nap = defineRun('nap', async (run) => {
    await run.step('first', () => {
      down = true
    })
    await run.sleep('moment', 1)
    return run.step('second', () => 'up again')
  })
  const engine = await world.engine({ runs: [nap], leaseMs: 20_000 }, (store) => {
    const cut = watched(store, async (_text, send) => {
      if (!down) return await send()
      refused += 1
      // It comes back when it was missed, not after a time in which a slow machine may not even have asked.
      if (refused === REFUSED) down = false
      throw away()
    })
    const now: SqlStore['clock']['now'] = async (call) => {
      if (down) throw away()
      return await store.clock.now(call)
    }
    return { ...cut, clock: { ...store.clock, now } }
  })
  const handle = await engine.start(nap, { runId: 'n', input: null })
  assert.equal(
    await until(
      'the run has a result',
      () => handle.result().catch(() => null),
      (value) => value !== null,
    ),
    'up again',
  )
  assert.equal(refused, REFUSED)
  assert.equal((await handle.view()).steps[0]?.attempts, 1)
})

onEveryRunStore('a process whose lease is over by its own clock begins nothing more', async (world) => {
  const own = createRuntime()
  let paused = false
  let pausedMs = 0
  const acts: string[] = []
  const two = defineRun('two', async (run) => {
    await run.step('first', () => void acts.push('first'))
    // Not in the step: a write that waits while its process is paused is given up, and the step would rightly act again.
    paused = true
    return run.step('second', () => void acts.push('second'))
  })
  // Paused again before every look at the clock: it cannot come back as a living worker and take the run itself.
  const runtime = { ...own, monotonicMs: () => own.monotonicMs() + (paused ? (pausedMs += HOUR) : 0) }
  const engine = await world.engine({ runs: [two], runtime })
  const handle = await engine.start(two, { runId: 'p', input: null })
  await until(
    'a worker reports that it lost the run',
    async () => world.events.map(({ kind }) => kind),
    (kinds) => kinds.includes('lost'),
  )
  assert.deepEqual(acts, ['first'])
  await world.advance(MINUTE)
  await world.engine({ runs: [two] })
  await handle.result({ waitMs: 2 * HOUR })
  assert.deepEqual(acts, ['first', 'second'])
})

onEveryRunStore('a transactional step whose commit was not heard of is not done again', async (world) => {
  const own = world.store()
  await own.sql.query('create table letters (id text not null)')
  let lost = false
  const write = defineRun('write', (run) =>
    run.step(
      'write',
      { semantics: 'transactional', retry: { backoff: 'fixed', baseMs: 1 } },
      async ({ tx, effectKey: key }) => {
        await tx.query('insert into letters (id) values (?)', [key])
        return key
      },
    ),
  )
  const engine = await world.engine({ runs: [write] }, (store) => ({
    ...store,
    transactions: {
      async run(work, call) {
        const value = await store.transactions.run(work, call)
        if (lost) return value
        lost = true
        throw away()
      },
    },
  }))
  const key = await (await engine.start(write, { runId: 'w', input: null })).result()
  assert.deepEqual(await own.sql.query('select id from letters'), [{ id: key }])
})

onEveryRunStore('one value that cannot be written fails alone, and is reported', async (world) => {
  const data: Record<string, unknown> = { huge: 1n }
  data['itself'] = data
  const odd = defineRun('odd', (run) =>
    run.step('throw', { retry: { attempts: 1 } }, () => {
      throw notDone(Object.assign(new Error('with \u0000 and \ud800'), { data }))
    }),
  )
  const nul = defineRun('nul', (run, input: string) => run.step('echo', () => `${input}\u0000\ud800`))
  const engine = await world.engine({ runs: [odd, nul] })
  const handles = await Promise.all([
    engine.start(odd, { runId: 'odd', input: null }),
    ...Array.from({ length: 5 }, (_, index) => engine.start(nul, { runId: `nul ${index}`, input: '\u0000' })),
  ])
  const [first, ...others] = handles
  await assert.rejects(first?.result() ?? assert.fail(), (error) => isOnceError(error, 'run_failed'))
  for (const other of others) assert.equal(await other.result(), '\u0000\u0000\ud800')
})

onEveryRunStore('bad ids, names and inputs are refused with words, before they reach the store', async (world) => {
  const echo = defineRun('echo', async (_run, input: unknown) => input)
  const engine = await world.engine({ runs: [echo] })
  for (const runId of ['', ' ', 'a\u0000b', '\ud800', 'x'.repeat(600), 7 as never]) {
    await assert.rejects(engine.start(echo, { runId, input: 1 }), (error) => isOnceError(error, 'bad_option'))
  }
  const circular: unknown[] = []
  circular.push(circular)
  for (const input of [circular, () => 1, 'x'.repeat(2_000_000)]) {
    await assert.rejects(engine.start(echo, { runId: 'bad', input }), (error) => isOnceError(error, 'bad_input'))
  }
  for (const input of [undefined, new Date(0), Number.NaN, new Map([[1, 2]])]) {
    assert.deepEqual(
      await (await engine.start(echo, { runId: `fine ${typeof input} ${input}`, input })).result(),
      input,
    )
  }
  await assert.rejects(engine.signal('bad', 'a/b', 1), (error) => isOnceError(error, 'bad_option'))
  await assert.rejects(engine.signal('bad', 'a', 1, { id: '\u0000' }), (error) => isOnceError(error, 'bad_option'))
  await assert.rejects(engine.list({ limit: -1 }), (error) => isOnceError(error, 'bad_option'))
  assert.throws(
    () => defineRun('v', async () => 1, { version: 2 ** 40 }),
    (error) => isOnceError(error, 'bad_option'),
  )
})

onEveryRunStore(
  'a run of a definition that is not known, or newer, waits for a process that knows it',
  async (world) => {
    const mine = defineRun('mine', async (run) => run.step('act', () => 'mine'))
    const newer = defineRun('shared', async (run) => run.step('act', () => 'new'), { version: 2 })
    const older = defineRun('shared', async (run) => run.step('act', () => 'old'))
    const starter = await world.engine({ runs: [mine, newer], work: false })
    const unknown = await starter.start(mine, { runId: 'm', input: null })
    const ahead = await starter.start(newer, { runId: 's', input: null })
    const behind = await world.engine({ runs: [older] })
    const probe = await behind.start(older, { runId: 'probe', input: null })
    assert.equal(await probe.result(), 'old')
    assert.deepEqual([(await unknown.view()).steps, (await ahead.view()).steps], [[], []])
    await assert.rejects(behind.replay('s'), /version 2/)
    await assert.rejects(behind.replay('m'), (error) => isOnceError(error, 'bad_option'))
    await world.engine({ runs: [mine, newer] })
    assert.deepEqual([await unknown.result(), await ahead.result()], ['mine', 'new'])
  },
)

onEveryRunStore('a retry that comes after the window is parked, however late the worker is', async (world) => {
  let sends = 0
  const channel: Channel<null, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: false, keepsFailures: false },
    async send() {
      sends += 1
      if (sends === 1) throw new Error('the line went dead')
      return 'sent'
    },
  }
  const send = defineRun('send', (run) =>
    run.step('send', { channel, retry: { backoff: 'fixed', baseMs: MINUTE } }, () => null),
  )
  const first = await world.engine({ runs: [send] })
  const handle = await first.start(send, { runId: 's', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  await first.stop()
  await world.advance(2 * HOUR)
  const second = await world.engine({ runs: [send] })
  const view = await until(
    'an outcome of the run is unknown',
    second.handle('s').view,
    ({ state }) => state === 'unknown',
  )
  assert.equal(sends, 1)
  await second.resolve('s', view.steps[0]?.key ?? '', { kind: 'not_done' })
  assert.equal(await second.handle('s').result(), 'sent')
})

onEveryRunStore(
  'a process that dies while it changes a run from outside has applied the whole change, or nothing',
  async (world) => {
    const acts: string[] = []
    const changed = defineRun('changed', async (run) => {
      const posted = await run.step('post', { semantics: 'once' }, () => {
        throw new Error('the line went dead')
      })
      const { kind } = await run.waitFor('go')
      await run.step('late', { retry: { attempts: 1 } }, () => {
        if (acts.push('late') === 1) throw notDone(new Error('not yet'))
      })
      return [posted, kind]
    })
    const engine = await world.engine({ runs: [changed] })
    const handle = await engine.start(changed, { runId: 't', input: null })
    const { steps } = await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
    /** Each of its statements in turn is the one that it dies at, before or after it took effect; the last try goes through. */
    async function dyingAt<T>(change: (operator: typeof engine) => Promise<T>): Promise<T> {
      for (let deadly = 0; ; deadly++) {
        let sent = -1
        let died = false
        const operator = await world.engine({ runs: [changed], work: false }, (store) =>
          watched(store, async (text, send) => {
            if (!/onceonly_run/.test(text) || !/^(?:update|insert|delete)/.test(text)) return send()
            sent += 1
            if (sent !== deadly >> 1) return send()
            died = true
            if (deadly % 2 === 1) await send()
            throw new OnceError('store_unavailable', 'It died here.', { applied: 'no' })
          }),
        )
        const changing = change(operator)
        await changing.catch(() => undefined)
        if (!died) return changing
        await assert.rejects(changing, (error) => isOnceError(error, 'store_unavailable'))
      }
    }
    await dyingAt((operator) => operator.resolve('t', steps[0]?.key ?? '', { kind: 'succeeded', result: 'posted' }))
    await until(
      'the run sleeps, with two steps recorded',
      handle.view,
      (view) => view.state === 'sleeping' && view.steps.length === 2,
    )
    assert.equal(await dyingAt((operator) => operator.signal('t', 'go', 1, { id: 'once' })), true)
    await until('the run has failed', handle.view, ({ state }) => state === 'failed')
    await dyingAt((operator) => operator.resume('t'))
    assert.deepEqual(await handle.result({ waitMs: 120_000 }), ['posted', 'received'])
    // A repeated signal after the end is recognized.
    assert.equal(await engine.signal('t', 'go', 1, { id: 'once' }), false)
    await assert.rejects(engine.signal('t', 'go', 1, { id: 'another' }), (error) => isOnceError(error, 'not_found'))
    await assert.rejects(engine.signal('unknown', 'go', 1), (error) => isOnceError(error, 'not_found'))
  },
)

/** As many rows as one statement can make: what takes a run years to gather. */
const numbers = (most: number) => `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${most})`

onEveryRunStore('what a run gathers is bounded, and the bound says what to do', async (world) => {
  const large = 'x'.repeat(limits.runResultChars)
  let acted = 0
  const long = defineRun('long', async (run) => {
    await run.race('r', { lost: (other) => other.waitFor('never'), won: async () => 1 })
    await run.waitFor('go')
    return run.step('act', () => ++acted)
  })
  const heavy = defineRun('heavy', (run) => run.race('r', { only: async () => large }))
  const unsure = defineRun('unsure', (run) =>
    run.step('ask', { semantics: 'once' }, () => {
      throw new Error('no answer')
    }),
  )
  const engine = await world.engine({ runs: [long, heavy, unsure], ...short })
  const failing = (runId: string) =>
    until(
      'the run has failed',
      () => engine.get(runId),
      ({ state }) => state === 'failed',
    )

  await engine.start(heavy, { runId: 'heavy', input: null })
  const { failure } = await failing('heavy')
  assert.equal(failure?.code, 'bad_input')
  assert.match(failure?.message ?? '', /let the branch return less/)

  await engine.start(unsure, { runId: 'unsure', input: null })
  const view = await until(
    'an outcome of the run is unknown',
    () => engine.get('unsure'),
    ({ state }) => state === 'unknown',
  )
  const given = { kind: 'succeeded', result: large } as const
  await assert.rejects(engine.resolve('unsure', view.steps[0]?.key ?? '', given), (error) =>
    isOnceError(error, 'bad_input'),
  )

  await engine.start(long, { runId: 'long', input: null })
  await until(
    'the run sleeps',
    () => engine.get('long'),
    ({ state }) => state === 'sleeping',
  )
  await engine.stop()
  const looker = await world.engine({ runs: [long], work: false })
  const { query } = world.store().sql
  await query(
    `${numbers(limits.runSignals)} insert into onceonly_run_signals (run_id, id, name, number, payload)
      select 'long', 'known ' || i, 'go', i, '0' from n`,
  )
  await assert.rejects(looker.signal('long', 'go', 1), (error) => isOnceError(error, 'run_too_long'))
  assert.equal(await looker.signal('long', 'go', 0, { id: 'known 1' }), false, 'what is there is known')
  // Lines of a branch that lost its race are not followed, but read.
  await query(
    `${numbers(limits.runEntries)} insert into onceonly_run_steps
        (run_id, key, position, branch, step_id, tick, kind, state, attempts, failures, recorded, at)
      select 'long', 'old ' || i, 100 + i, 'r/lost', 'r/lost/never', 0, 'step', 'abandoned', 0, '[]', '[]', 0 from n`,
  )
  const handle = (await world.engine({ runs: [long], ...short })).handle('long')
  await assert.rejects(
    handle.result({ waitMs: 120_000 }),
    (error) => isOnceError(error, 'run_failed') && /no room for act/.test(error.message),
  )
  assert.equal(acted, 0)
})
