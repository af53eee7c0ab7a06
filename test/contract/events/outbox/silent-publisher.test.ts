import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { until } from '../../../../src/testing/until.ts'
import { hurriedRuntime, onOutbox } from '../../../support/events/outbox/ground.ts'

const SILENT = /did not answer within 50 ms/

onOutbox('a publisher that does not answer is reported, and the batch is published again', async (ground) => {
  const { desk, events } = ground
  let calls = 0
  desk.before = () => (++calls === 1 ? new Promise(() => {}) : Promise.resolve())
  await ground.add({ topic: 'orders.paid', key: 'k', body: 1 })
  ground.relay({ publishMs: 50 })
  await ground.drained()
  const reasons = events.flatMap((event) => (event.kind === 'unavailable' ? [event.reason] : []))
  assert.match(reasons.join('\n'), SILENT)
  assert.deepEqual(
    desk.taken.map(({ body }) => body),
    ['1'],
  )
})

onOutbox('a relay whose publisher never answers stops all the same', async (ground) => {
  const { desk, events } = ground
  let calls = 0
  desk.before = () => {
    calls++
    return new Promise(() => {})
  }
  await ground.add({ topic: 'orders.paid', key: 'k', body: 1 })
  const relay = ground.relay({ publishMs: 50 })
  await until('the publisher is called', () => calls > 0)
  await relay.stop()
  assert.ok(events.some((event) => event.kind === 'unavailable' && SILENT.test(event.reason)))
  // Nothing is lost: it waits for the next relay.
  assert.equal(await ground.pending(), 1)
})

onOutbox('calls that were never answered do not pile up', async (ground) => {
  const { desk, events } = ground
  let calls = 0
  desk.before = () => {
    calls++
    return new Promise(() => {})
  }
  await ground.add({ topic: 'orders.paid', key: 'k', body: 1 })
  ground.relay({ publishMs: 20, runtime: hurriedRuntime() })
  const waiting = () => events.filter((event) => event.kind === 'unavailable' && /unanswered/.test(event.reason)).length
  await until('the relay waits for an answer', () => waiting() >= 2)
  assert.equal(calls, 4)
})

onOutbox('`publishMs` fits into half a lease', async (ground) => {
  for (const publishMs of [0, 1.5, 7_501, Number.NaN]) {
    assert.throws(
      () => ground.relay({ publishMs, leaseMs: 15_000 }),
      (error) => isOnceError(error, 'bad_option') && error.details['option'] === 'publishMs',
    )
  }
})
