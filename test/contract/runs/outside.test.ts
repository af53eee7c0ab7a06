import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, Resolution, Verified } from 'onceonly/run'
import { defineRun } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

onEveryRunStore('a signal ends a race while the other branch still acts, and aborts that branch', async (world) => {
  const aborted = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const race = defineRun('race', async (run) => {
    const first = await run.race('first', {
      stop: (branch) => branch.waitFor<string>('stop'),
      work: (branch) =>
        branch.step('work', ({ signal }) => {
          begun.resolve()
          return new Promise<never>((_, reject) => {
            signal.addEventListener('abort', () => {
              aborted.resolve()
              reject(new Error('not wanted'))
            })
          })
        }),
    })
    return [first, await run.waitFor('another', { timeoutMs: HOUR })]
  })
  const engine = await world.engine({ runs: [race] })
  const elsewhere = await world.engine({ runs: [race], work: false })
  const handle = await engine.start(race, { runId: 'r', input: null })
  await begun.promise
  await until('one step is recorded', handle.view, ({ steps }) => steps.length === 1)
  // A signal that no step waits for wakes no step.
  await elsewhere.signal('r', 'another', 2)
  await elsewhere.signal('r', 'stop', 'enough')
  await aborted.promise
  assert.deepEqual(await handle.result({ waitMs: 120_000 }), [
    { winner: 'stop', value: { kind: 'received', payload: 'enough' } },
    { kind: 'received', payload: 2 },
  ])
})

onEveryRunStore('a step that an operator resolved continues while other branches still act', async (world) => {
  const released = Promise.withResolvers<string>()
  const both = defineRun('both', (run) =>
    run.all('both', {
      letter: async (branch) => {
        const posted = await branch.step('post', { semantics: 'once' }, () => {
          throw new Error('the line went dead')
        })
        return branch.step('after', () => posted)
      },
      busy: (branch) => branch.step('busy', () => released.promise),
    }),
  )
  const engine = await world.engine({ runs: [both] })
  const elsewhere = await world.engine({ runs: [both], work: false })
  const handle = await engine.start(both, { runId: 'b', input: null })
  const view = await until(
    'the outcome of the first step is unknown',
    handle.view,
    ({ steps }) => steps[0]?.state === 'unknown',
  )
  await elsewhere.resolve('b', view.steps[0]?.key ?? '', { kind: 'succeeded', result: 'posted' })
  const after = await until('both/letter/after is recorded', handle.view, ({ steps }) =>
    steps.some(({ id }) => id === 'both/letter/after'),
  )
  assert.equal(after.state, 'running')
  released.resolve('idle')
  assert.deepEqual(await handle.result(), { busy: 'idle', letter: 'posted' })
})

const words: readonly (readonly [Resolution, Verified<string>, result: string, acts: number])[] = [
  [{ kind: 'succeeded', result: 'by an operator' }, { kind: 'unknown' }, 'by an operator', 1],
  [{ kind: 'succeeded', result: 'by an operator' }, { kind: 'not_done' }, 'by an operator', 1],
  [{ kind: 'succeeded', result: 'by an operator' }, { kind: 'done', result: 'by the probe' }, 'by an operator', 1],
  [{ kind: 'not_done' }, { kind: 'unknown' }, 'acted again', 2],
]

for (const [said, found, result, count] of words) {
  onEveryRunStore(
    `an operator resolves ${said.kind} while a probe is under way that will find ${found.kind}: the operator's outcome stays`,
    async (world) => {
      let acts = 0
      let probes = 0
      const probing = Promise.withResolvers<void>()
      const answer = Promise.withResolvers<Verified<string>>()
      const run = defineRun('ask', (ask) =>
        ask.step(
          'post',
          {
            semantics: 'verify',
            verify: async () => {
              if (++probes === 1) return { kind: 'unknown' }
              probing.resolve()
              return answer.promise
            },
          },
          () => {
            if (++acts === 1) throw new Error('the line went dead')
            return 'acted again'
          },
        ),
      )
      const engine = await world.engine({ runs: [run] })
      const handle = await engine.start(run, { runId: 'p', input: null })
      const { steps } = await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
      await world.advance(10 * SECOND)
      await probing.promise
      await engine.resolve('p', steps[0]?.key ?? '', said)
      answer.resolve(found)
      assert.equal(await handle.result({ waitMs: 120_000 }), result)
      assert.equal(acts, count)
    },
  )
}

onEveryRunStore('a clock that was moved far ahead puts no step in doubt that begins after it', async (world) => {
  const sends: string[] = []
  const channel: Channel<string, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: false, keepsFailures: false },
    async send(name) {
      sends.push(name)
      if (sends.filter((each) => each === name).length === 1) throw new Error('the line went dead')
      return name
    },
  }
  const send = defineRun('send', (run, name: string) =>
    run.step('send', { channel, retry: { backoff: 'fixed', baseMs: 1 } }, () => name),
  )
  const engine = await world.engine({ runs: [send], pollMs: 500 })
  const starter = await world.engine({ runs: [send], work: false })
  await world.advance(48 * HOUR)
  const started = await engine.start(send, { runId: 'started', input: 'started' })
  assert.equal(await started.result({ waitMs: 120_000 }), 'started')
  await world.advance(48 * HOUR)
  const taken = await starter.start(send, { runId: 'taken', input: 'taken' })
  assert.equal(await taken.result({ waitMs: 120_000 }), 'taken')
  assert.ok((await taken.view()).startedAt - (await started.view()).startedAt >= 48 * HOUR)
})

onEveryRunStore('the unknown step of a dead worker survives a worker that only hands the run on', async (world) => {
  let sends = 0
  const channel: Channel<null, number> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: false, keepsFailures: false },
    send: async () => ++sends,
  }
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const send = (before: () => Promise<void>) =>
    defineRun('send', async (run) => {
      await before()
      return run.step('send', { channel }, () => null)
    })
  const plain = send(async () => {})
  const starter = await world.engine({ runs: [plain], work: false })
  const handle = await starter.start(plain, { runId: 'd', input: null })
  // As if a worker had died with it: whether it sent anything is unknown.
  await world.store().sql.query('update onceonly_runs set taken_at = started_at')
  const stopped = await world.engine({
    runs: [
      send(() => {
        begun.resolve()
        return released.promise
      }),
    ],
  })
  await begun.promise
  const stopping = stopped.stop()
  released.resolve()
  await stopping
  await world.advance(2 * HOUR)
  await world.engine({ runs: [plain] })
  await until(
    'the run has succeeded, or its outcome is unknown',
    handle.view,
    ({ state }) => state === 'unknown' || state === 'succeeded',
  )
  assert.deepEqual([(await handle.view()).state, sends], ['unknown', 0])
})

onEveryRunStore('signals to a run that does not wait cost nothing, and are not lost', async (world) => {
  const released = Promise.withResolvers<void>()
  const late = defineRun('late', async (run) => {
    await run.step('busy', () => released.promise)
    return [await run.waitFor('a'), await run.waitFor('a')]
  })
  const engine = await world.engine({ runs: [late] })
  const handle = await engine.start(late, { runId: 'l', input: null })
  await Promise.all([engine.signal('l', 'a', 1, { id: '1' }), engine.signal('l', 'a', 1, { id: '2' })])
  // A chance for the marks to arrive while nothing waits for them; either order ends in the same.
  await sleep(50)
  released.resolve()
  const received = { kind: 'received', payload: 1 }
  assert.deepEqual(await handle.result({ waitMs: 120_000 }), [received, received])
})
