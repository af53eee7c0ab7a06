import assert from 'node:assert/strict'
import { DAY, isOnceError, limits, MINUTE, notDone } from 'onceonly'
import type { Channel } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { createHolding } from '../../../src/runs/holding.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, watched } from '../../support/runs/world.ts'

onEveryRunStore('results are kept for ninety days after the end, and those of a live run forever', async (world) => {
  const quick = defineRun('quick', (run) => run.step('act', () => 'done'))
  const long = defineRun('long', async (run) => {
    const first = await run.step('act', () => 'first')
    await run.waitFor('go')
    return first
  })
  const engine = await world.engine({ runs: [quick, long] })
  await (await engine.start(quick, { runId: 'q', input: null })).result()
  const handle = await engine.start(long, { runId: 'l', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  const holding = createHolding(world.store())
  const sweep = () => holding.sweep(limits.runKeepMs, 10)

  await world.advance(90 * DAY - MINUTE)
  assert.equal((await engine.replay('q')).verdict, 'identical')
  assert.equal(await sweep(), 0)
  await world.advance(2 * MINUTE)
  // Past its time, and not swept yet: nothing is said about it any more.
  await assert.rejects(engine.replay('q'), (error) => isOnceError(error, 'not_found'))
  assert.equal(await sweep(), 1)
  assert.equal(await sweep(), 0)
  await assert.rejects(engine.get('q'), (error) => isOnceError(error, 'not_found'))
  assert.deepEqual(await world.store().sql.query("select key from onceonly_run_steps where run_id = 'q'"), [])
  await engine.signal('l', 'go', null)
  assert.equal(await handle.result(), 'first')
})

onEveryRunStore('declared places of plans and inputs are not compared, the others are', async (world) => {
  let [text, at, sends] = ['hello', 1, 0]
  const channel: Channel<{ readonly text: string; readonly at: number }, number> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: DAY, comparesBody: true, keepsFailures: false },
    async send(plan) {
      sends += 1
      if (sends === 1) throw new Error('the line went dead')
      return plan.at
    },
  }
  const retry = { backoff: 'fixed', baseMs: MINUTE } as const
  const letter = defineRun('letter', async (run) => {
    const input = { text, stamps: [{ at }] }
    await run.step('note', { input, unstable: ['$.stamps[*].at'] }, () => 1)
    return run.step('mail', { channel, retry, unstable: ['$.at'] }, () => ({ text, at }))
  })
  const engine = await world.engine({ runs: [letter] })
  const handle = await engine.start(letter, { runId: 'l', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  at = 2
  assert.equal((await engine.replay('l')).verdict, 'identical-but-for-ignored-paths')
  await world.advance(MINUTE)
  // Resent as it was recorded, byte for byte.
  assert.equal(await handle.result(), 1)

  sends = 0
  const other = await engine.start(letter, { runId: 'o', input: null })
  await until('the run sleeps', other.view, ({ state }) => state === 'sleeping')
  text = 'good morning'
  await world.advance(MINUTE)
  await assert.rejects(other.result(), (error) => isOnceError(error, 'run_failed'))
  const { failure } = await other.view()
  assert.equal(failure?.code, 'run_diverged')
})

onEveryRunStore('a divergence of a plan shows both sides', async (world) => {
  let text = 'hello'
  let broken = true
  const channel: Channel<{ readonly text: string }, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: DAY, comparesBody: true, keepsFailures: false },
    async send() {
      if (broken) throw new Error('the line went dead')
      return 'sent'
    },
  }
  const letter = defineRun('letter', (run) =>
    run.step('mail', { channel, retry: { backoff: 'fixed', baseMs: MINUTE } }, () => ({ text })),
  )
  const engine = await world.engine({ runs: [letter] })
  const handle = await engine.start(letter, { runId: 'l', input: null })
  await until('the run sleeps', handle.view, ({ state }) => state === 'sleeping')
  text = 'good morning'
  await world.advance(MINUTE)
  const { failure } = await until('the run has failed', handle.view, ({ state }) => state === 'failed')
  const sides = failure?.data as Record<'recorded' | 'found', { readonly plan: unknown }> | undefined
  assert.deepEqual([sides?.recorded.plan, sides?.found.plan], [{ text: 'hello' }, { text: 'good morning' }])
  ;[text, broken] = ['hello', false]
  await engine.resume('l')
  await world.advance(MINUTE)
  assert.equal(await handle.result(), 'sent')
})

onEveryRunStore(
  'a process that stops hands its runs on: what it had begun ends, and nothing is done twice',
  async (world) => {
    const acts: string[] = []
    const begun = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    const two = defineRun('two', async (run) => {
      await run.step('first', async () => {
        acts.push('first')
        begun.resolve()
        await released.promise
      })
      return run.step('second', () => void acts.push('second'))
    })
    const first = await world.engine({ runs: [two] })
    const handle = await first.start(two, { runId: 't', input: null })
    await begun.promise
    const stopping = first.stop()
    released.resolve()
    await stopping
    assert.deepEqual(acts, ['first'])
    assert.deepEqual(
      (await handle.view()).steps.map(({ id, state }) => [id, state]),
      [['first', 'succeeded']],
    )
    const second = await world.engine({ runs: [two] })
    await second.handle('t').result({ waitMs: 120_000 })
    assert.deepEqual(acts, ['first', 'second'])
  },
)

onEveryRunStore('a run is swept whole or not at all, and what is past its time is not resumed', async (world) => {
  const broken = defineRun('broken', async (run) => {
    await run.step('first', () => 1)
    return run.step('second', { retry: { attempts: 1 } }, () => {
      throw notDone(new Error('not yet'))
    })
  })
  const engine = await world.engine({ runs: [broken] })
  const handle = await engine.start(broken, { runId: 'b', input: null })
  await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_failed'))
  await world.advance(90 * DAY - MINUTE)
  await engine.resume('b')
  await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_failed'))
  await world.advance(90 * DAY + MINUTE)
  await assert.rejects(engine.resume('b'), (error) => isOnceError(error, 'not_found'))
  const before = await handle.view()
  for (const deadly of [0, 1, 2]) {
    let sent = -1
    const dying = watched(world.store(), (text, send) => {
      if (text.startsWith('delete')) sent += 1
      return sent === deadly ? Promise.reject(new Error('It died here.')) : send()
    })
    await assert.rejects(createHolding(dying).sweep(limits.runKeepMs, 10))
    assert.deepEqual(await handle.view(), before)
  }
  assert.equal(await createHolding(world.store()).sweep(limits.runKeepMs, 10), 1)
  for (const table of ['onceonly_runs', 'onceonly_run_steps', 'onceonly_run_signals']) {
    assert.deepEqual(await world.store().sql.query(`select * from ${table}`), [])
  }
})
