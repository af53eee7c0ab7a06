import assert from 'node:assert/strict'
import type { Channel, HttpPlan, HttpSent, RunState } from 'onceonly/run'
import { defineRun, httpChannel, providers } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import { closedUrl } from '../../support/closed-url.ts'
import type { RunWorld } from '../../support/runs/world.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

const ended: readonly RunState[] = ['succeeded', 'failed', 'unknown']

onEveryRunStore('a `once` step that found a service down is unknown, and not sent again', async (world) => {
  const down = await closedUrl()
  let sent = 0
  const text = defineRun('text', (run) =>
    run.step('sms', { semantics: 'once', retry: { attempts: 3, backoff: 'fixed', baseMs: 1 } }, async () => {
      sent++
      await fetch(down)
    }),
  )
  const engine = await world.engine({ runs: [text] })
  const handle = await engine.start(text, { runId: 't', input: null })
  const view = await until('the run has ended or waits for an operator', handle.view, ({ state }) =>
    ended.includes(state),
  )
  assert.equal(view.state, 'unknown')
  assert.equal(sent, 1)
})

onEveryRunStore('a `once` step is unknown also over the HTTP channel', async (world) => {
  const channel = httpChannel({ name: 'sms', provider: providers.twilio })
  const view = await sendingTo(await closedUrl(), channel, world)
  assert.equal(view.state, 'unknown')
  assert.deepEqual(view.steps[0]?.attempts, 1)
})

onEveryRunStore('the HTTP channel knows that it made one call to a provider that honours keys', async (world) => {
  const channel = httpChannel({ name: 'mail', provider: providers.http })
  const view = await sendingTo(await closedUrl(), channel, world)
  assert.equal(view.state, 'failed')
  assert.deepEqual(
    view.steps[0]?.failures.map(({ definite }) => definite),
    [true, true],
  )
})

onEveryRunStore('a step may throw what cannot be inspected, and is tried again', async (world) => {
  let tries = 0
  const retry = { attempts: 2, backoff: 'fixed', baseMs: 1 } as const
  const odd = defineRun('odd', (run) =>
    run.step('act', { retry }, () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      tries++
      if (tries === 1) throw proxy
      return 'done'
    }),
  )
  const engine = await world.engine({ runs: [odd] })
  const handle = await engine.start(odd, { runId: 'o', input: null })
  const view = await until('the run has ended', handle.view, ({ state }) => ended.includes(state))
  assert.deepEqual([view.state, view.result, tries], ['succeeded', 'done', 2])
})

async function sendingTo(url: string, channel: Channel<HttpPlan, HttpSent>, world: RunWorld) {
  const retry = { attempts: 2, backoff: 'fixed', baseMs: 1 } as const
  const send = defineRun('send', (run) => run.step('send', { channel, retry }, () => ({ url, body: {} })))
  const engine = await world.engine({ runs: [send] })
  const handle = await engine.start(send, { runId: 's', input: null })
  return until('the run has ended or waits for an operator', handle.view, ({ state }) => ended.includes(state))
}
