import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isOnceError, notDone } from 'onceonly'
import type { Channel, RunContext } from 'onceonly/run'
import { defineRun, httpChannel, providers } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const ATTEMPTS = 3
const retry = { attempts: ATTEMPTS, backoff: 'fixed', baseMs: 0 } as const

/** The run once it has ended, or waits for an operator. */
async function endOf(world: RunWorld, body: (run: RunContext) => Promise<unknown>) {
  const run = defineRun('sends', body)
  const engine = await world.engine({ runs: [run] })
  const { view } = await engine.start(run, { runId: 'r', input: null })
  const seen = await until(
    'the run has come to its end',
    view,
    ({ state }) => state !== 'running' && state !== 'sleeping',
  )
  return { engine, view: seen, step: seen.steps[0] }
}

onEveryRunStore('a provider that cuts every connection leaves the step unknown', async (world) => {
  let requests = 0
  const server = createServer((request) => {
    requests += 1
    request.socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mail`
  const channel = httpChannel({ name: 'mail', provider: providers.http })
  try {
    const { engine, view, step } = await endOf(world, (run) =>
      run.step('send', { channel, retry }, () => ({ url, body: 'hello' })),
    )
    assert.deepEqual([view.state, step?.state, step?.attempts, requests], ['unknown', 'unknown', ATTEMPTS, ATTEMPTS])
    assert.deepEqual(
      step?.failures.map(({ definite }) => definite),
      [false, false, false],
    )
    await engine.resolve('r', step?.key ?? '', { kind: 'failed', error: new Error('the provider has no such mail') })
    await assert.rejects(engine.handle('r').result({ waitMs: 120_000 }), (error) => isOnceError(error, 'run_failed'))
    assert.equal(requests, ATTEMPTS)
  } finally {
    server.close()
  }
})

onEveryRunStore('one ambiguous attempt is enough, whatever the others were', async (world) => {
  const { view } = await endOf(world, (run) =>
    run.step('send', { retry }, ({ attemptNumber: attempt }) => {
      if (attempt === 1) throw new Error('the line went dead')
      throw notDone(new Error('busy'))
    }),
  )
  assert.equal(view.state, 'unknown')
})

onEveryRunStore('attempts that all did nothing fail the run', async (world) => {
  const { view } = await endOf(world, (run) =>
    run.step('send', { retry }, () => {
      throw notDone(new Error('busy'))
    }),
  )
  assert.equal(view.state, 'failed')
})

onEveryRunStore('a transaction that was rolled back did nothing', async (world) => {
  const { view } = await endOf(world, (run) =>
    run.step('write', { semantics: 'transactional', retry }, async () => {
      throw new Error('constraint violated')
    }),
  )
  assert.equal(view.state, 'failed')
})

onEveryRunStore('a channel that can be asked is asked after the last attempt', async (world) => {
  const channel: Channel<string, string> = {
    name: 'mail',
    offer: { kind: 'native', windowMs: 3_600_000, comparesBody: false, keepsFailures: false },
    send: async () => {
      throw new Error('the line went dead')
    },
    verify: async () => ({ kind: 'done', result: 'found it' }),
  }
  const { view, step } = await endOf(world, (run) => run.step('send', { channel, retry }, () => 'hello'))
  assert.deepEqual([view.state, step?.attempts, step?.result], ['succeeded', ATTEMPTS, 'found it'])
})

onEveryRunStore('an attempt that only waited for its turn is none', async (world) => {
  const numbers: number[] = []
  const { view, step } = await endOf(world, (run) =>
    run.step('send', { retry }, ({ attemptNumber }) => {
      numbers.push(attemptNumber)
      const isTurn = numbers.length % 3 === 0
      throw isTurn ? notDone(new Error('busy')) : notDone(new Error('not yet'), { retryAfterMs: 0, counted: false })
    }),
  )
  assert.deepEqual([view.state, step?.attempts], ['failed', ATTEMPTS])
  assert.deepEqual(numbers, [1, 1, 1, 2, 2, 2, 3, 3, 3])
  assert.deepEqual(
    step?.failures.map(({ message }) => message),
    ['busy', 'busy', 'busy'],
  )
})
