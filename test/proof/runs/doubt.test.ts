import assert from 'node:assert/strict'
import { isOnceError, notDone } from 'onceonly'
import type { Channel, StepContext, Verified } from 'onceonly/run'
import { defineRun, stepKey } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore, watched } from '../../support/runs/world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const retry = { backoff: 'fixed', baseMs: 1 } as const

interface Offered {
  readonly comparesBody?: boolean
  readonly keepsFailures?: boolean
}

/** A provider that knows a key for an hour; each send gets its number, from 1. */
function provider(offered: Offered, send: (number: number, context: StepContext) => Promise<string>) {
  const keys: string[] = []
  const channel: Channel<string, string> = {
    name: 'bank',
    offer: { kind: 'native', windowMs: HOUR, comparesBody: true, keepsFailures: false, ...offered },
    send: (_plan, context) => send(keys.push(context.effectKey), context),
  }
  return { keys, channel }
}

onEveryRunStore('after a lost answer the key stays, whatever the provider refuses meanwhile', async (world) => {
  const { keys, channel } = provider({ keepsFailures: true }, async (number) => {
    if (number === 1) throw new Error('the answer was lost, and the money is gone')
    if (number <= 3) throw notDone(new Error('too many requests'), { retryAfterMs: 0 })
    return 'charged'
  })
  const charge = defineRun('charge', (run) => run.step('charge', { channel, retry }, () => 'all of it'))
  const engine = await world.engine({ runs: [charge] })
  assert.equal(await (await engine.start(charge, { runId: 'c', input: null })).result(), 'charged')
  assert.deepEqual(keys, Array(4).fill(stepKey('c', 'charge', 0)))
})

for (const comparesBody of [true, false]) {
  onEveryRunStore(
    `what a dead worker sent counts from then on, also when the next attempt is refused (bodies compared: ${comparesBody})`,
    async (world) => {
      const sent = Promise.withResolvers<void>()
      const { keys, channel } = provider({ comparesBody, keepsFailures: true }, async (number) => {
        if (number === 1) {
          sent.resolve()
          return new Promise<never>(() => {})
        }
        if (number === 2) throw notDone(new Error('too many requests'), { retryAfterMs: 30 * MINUTE })
        if (number === 3) throw notDone(new Error('still too many'), { retryAfterMs: 31 * MINUTE })
        return 'sent'
      })
      const send = defineRun('send', (run) => run.step('send', { channel }, () => 'a letter'))
      let dead = false
      const first = await world.engine({ runs: [send], leaseMs: 3_000 }, (store) =>
        watched(store, (_text, pass) => (dead ? Promise.reject(new Error('dead')) : pass())),
      )
      const starter = await world.engine({ runs: [send], work: false })
      await first.start(send, { runId: 's', input: null })
      await sent.promise
      dead = true
      await world.advance(MINUTE)
      await world.engine({ runs: [send], leaseMs: HOUR })
      const seen = (count: number) =>
        until(`the run rests after ${count} definite refusals`, starter.handle('s').view, ({ state, steps }) => {
          const refused = steps[0]?.failures.filter(({ definite }) => definite).length
          return state !== 'running' && refused === count
        })
      // Within the window it is tried again, under the same key.
      assert.equal((await seen(1)).state, 'sleeping')
      await world.advance(30 * MINUTE)
      const { state, steps } = await seen(2)
      assert.deepEqual([state, steps[0]?.state, keys], ['unknown', 'unknown', Array(3).fill(stepKey('s', 'send', 0))])
      await starter.resolve('s', steps[0]?.key ?? '', { kind: 'not_done' })
      assert.equal(await starter.handle('s').result(), 'sent')
      dead = false
    },
  )
}

onEveryRunStore('past the window of a provider with a probe no run waits for an operator', async (world) => {
  const asked: string[] = []
  const { keys, channel } = provider({}, async () => {
    throw Object.assign(new Error('the answer was lost'), { retryAfterMs: 2 * HOUR })
  })
  const askable: typeof channel = {
    ...channel,
    verify: async (_plan, { effectKey: key }) => {
      asked.push(key)
      return { kind: 'done', result: 'charged' }
    },
  }
  const charge = defineRun('charge', (run) => run.step('charge', { channel: askable, retry }, () => 'all of it'))
  const engine = await world.engine({ runs: [charge] })
  const handle = await engine.start(charge, { runId: 'v', input: null })
  assert.equal(await handle.result({ waitMs: 120_000 }), 'charged')
  assert.deepEqual([keys, asked], [[stepKey('v', 'charge', 0)], [stepKey('v', 'charge', 0)]])
})

onEveryRunStore('a step that probes before it acts again keeps its attempts and its pauses', async (world) => {
  const acts: number[] = []
  const answers: Verified<string>[] = []
  const now = () => world.store().clock.now({ timeoutMs: 60_000 })
  const verify = async () => answers.shift() ?? { kind: 'not_done' as const }
  const hourly = { attempts: 3, backoff: 'fixed', baseMs: HOUR } as const
  const ask = defineRun('ask', (run) =>
    run.step('act', { semantics: 'verify', verify, retry: hourly }, async () => {
      acts.push(await now())
      throw new Error('the line went dead')
    }),
  )
  const engine = await world.engine({ runs: [ask] })
  // The second time the question has no answer at first: that shortens nothing.
  answers.push({ kind: 'not_done' }, { kind: 'unknown' })
  const handle = await engine.start(ask, { runId: 'a', input: null })
  const rests = (attempts: number, as: string) =>
    until(
      `the run is ${as} after attempt ${attempts}`,
      handle.view,
      ({ state, steps }) => state === as && steps[0]?.attempts === attempts,
    )
  await rests(1, 'sleeping')
  await world.advance(HOUR)
  await rests(2, 'unknown')
  await world.advance(MINUTE)
  await rests(2, 'sleeping')
  await world.advance(HOUR)
  await assert.rejects(handle.result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
  const [first = 0, second = 0, third = 0] = acts
  assert.equal(acts.length, 3)
  assert.ok(second - first >= HOUR && third - second >= HOUR, String(acts))
  assert.deepEqual(
    (await handle.view()).steps.map(({ state, attempts, failures }) => [state, attempts, failures.length]),
    [['failed', 3, 3]],
  )
})
