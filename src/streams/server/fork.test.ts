import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { until } from '../../testing/until.ts'
import { createLocalExchange } from '../exchange/local.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import type { Fork } from '../ports.ts'
import { createStreamRegion } from './region.ts'
import { enter, send } from './test-peer.ts'

test('clones that were accepted in two regions under one number: both regions report both clones', async () => {
  let cut = true
  // A question into the cut is given up soon, because the test waits for the next one.
  const own = createRuntime()
  const runtime: Runtime = {
    ...own,
    setTimer: (ms, fire, background) => own.setTimer(Math.min(ms, 50), fire, background),
  }
  const exchange = createLocalExchange({ way: () => ({ cut, delayMs: 0 }), runtime })
  const forks: Record<string, Fork[]> = { eu: [], us: [] }
  const [eu, us] = ['eu', 'us'].map((region) =>
    createStreamRegion({
      region,
      log: createMemoryRoomLog({ region, nowMs: () => performance.now() }),
      exchange: exchange.of(region),
      peers: ['eu', 'us'].filter((peer) => peer !== region),
      bounds: { pullEveryMs: 20, pullRetryCapMs: 50 },
      onFork: (_room, fork) => void forks[region]?.push(fork),
    }),
  )
  assert.ok(eu && us)
  const [here, there] = [await enter(eu, 'ada'), await enter(us, 'ada')]
  // What was sent to both regions is a copy; what only looks like it is a fork.
  for (const [peer, text] of [
    [here, 'yes'],
    [there, 'no'],
  ] as const) {
    peer.say(send(1, 'the same'))
    peer.say(send(2, text))
    assert.equal((await peer.next('ack')).floor, 3)
  }
  cut = false
  const bob = await enter(eu, 'bob')
  bob.say(send(1, 'a hint for the others'))
  const cy = await enter(us, 'cy')
  cy.say(send(1, 'and one back'))
  for (const peer of [here, there]) assert.deepEqual(await peer.next('nack'), { kind: 'nack', cseq: 2, why: 'fork' })
  const summaryOf = ({ cseq, shown, hidden }: Fork) => [cseq, shown.log, hidden.log, hidden.body]
  await until('both', () => forks['eu']?.length === 1 && forks['us']?.length === 1)
  assert.deepEqual(forks['eu']?.map(summaryOf), [[2, 'eu.1', 'us.1', 'no']])
  assert.deepEqual(forks['us']?.map(summaryOf), [[2, 'us.1', 'eu.1', 'yes']])
  for (const region of [eu, us]) await region.stop()
})
