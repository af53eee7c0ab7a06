import assert from 'node:assert/strict'
import { DAY, SECOND } from 'onceonly'
import type { LocalBus } from 'onceonly/local'
import { createLocalBus } from 'onceonly/local'
import type { OutgoingMessage } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'
import type { Stage } from '../../../support/events/inbox/stage.ts'
import { eventsOf, onInbox } from '../../../support/events/inbox/stage.ts'

const outgoing = (id: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id,
  topic: 'orders',
  key: null,
  sequence: null,
  body: JSON.stringify({ order: id }),
  headers: {},
  ...changes,
})

async function withBus({ store }: Stage, body: (bus: LocalBus) => Promise<void>): Promise<void> {
  const bus = createLocalBus({ store, retryMs: 50 })
  try {
    await body(bus)
  } finally {
    await bus.stop()
  }
}

/** A consumer looks at once when there is a message for any other, and by itself only once a second. */
async function nudging(bus: LocalBus): Promise<() => Promise<void>> {
  await bus.subscribe({ consumer: 'nudged', topics: ['nudges'], concurrency: 1 }, async () => ({ kind: 'done' }))
  let nudges = 0
  return () => publish(bus, [outgoing(`nudge ${++nudges}`, { topic: 'nudges' })])
}

const publish = async (bus: LocalBus, messages: readonly OutgoingMessage[]) => {
  for (const { kind } of await bus.publish(messages, { timeoutMs: 60 * SECOND })) assert.equal(kind, 'confirmed')
}

const quick = { backoff: { baseMs: 1, capMs: 5 }, maxFailures: 3 }

onInbox('a broker delivers, and gets the result of every message', quick, (stage) =>
  withBus(stage, async (bus) => {
    const { inbox, another, events, write, written } = stage
    const runs = new Map<string, number>()
    await inbox.consume<{ order: string }>(bus, { topics: ['orders'], concurrency: 4 }, async ({ order }, { tx }) => {
      const run = (runs.get(order) ?? 0) + 1
      runs.set(order, run)
      await write(tx, order)
      if (order === 'poison' || (order === 'stumbles' && run < 3)) throw new Error(`run ${run}`)
    })
    const ids = ['a', 'b', 'poison', 'c', 'stumbles', 'd']
    await publish(
      bus,
      ids.map((id) => outgoing(id)),
    )
    const settled = () => eventsOf(events, 'handled').length + eventsOf(events, 'parked').length
    const nudge = await nudging(bus)
    await until(
      'every message is settled',
      () => nudge().then(settled),
      (count) => count === ids.length,
    )
    assert.deepEqual(await written(), ['a', 'b', 'c', 'd', 'stumbles'])
    assert.deepEqual([runs.get('poison'), runs.get('stumbles'), runs.get('a')], [3, 3, 1])
    const { rows } = await inbox.deadLetters.list()
    assert.deepEqual(
      rows.map(({ message, failure }) => [message.id, failure?.message]),
      [['poison', 'run 3']],
    )
    await inbox.stop()
    // Another consumer shows when the broker has delivered what comes after the end of this one.
    const seen: string[] = []
    await another({ consumer: 'other' }).consume(bus, { topics: ['orders'] }, ({ order }) => void seen.push(order))
    await publish(bus, [outgoing('after')])
    await until('the other consumer has the message', () => seen.includes('after'))
    assert.equal(runs.has('after'), false)
  }),
)

onInbox('a key keeps its order through a broker that knows none', { ...quick, ordered: true }, (stage) =>
  withBus(stage, async (bus) => {
    const { inbox } = stage
    const handled: string[] = []
    await inbox.consume(bus, { topics: ['orders'], concurrency: 8 }, (_, { message }) => void handled.push(message.id))
    const numbers = Array.from({ length: 10 }, (_, index) => 10 - index)
    await publish(
      bus,
      numbers.map((sequence) => outgoing(`k${sequence}`, { key: 'k', sequence })),
    )
    const nudge = await nudging(bus)
    await until('all are handled', () => nudge().then(() => handled.length === numbers.length))
    assert.deepEqual(
      handled,
      numbers.toReversed().map((sequence) => `k${sequence}`),
    )
  }),
)

onInbox('a window that is shorter than the redelivery horizon is warned about', { windowMs: 1_000 }, (stage) =>
  withBus(stage, async (bus) => {
    const { inbox, another, events } = stage
    await inbox.consume(bus, { topics: ['orders'] }, () => {})
    const [event] = eventsOf(events, 'warning')
    assert.ok(event?.warning.what === 'window_too_short')
    assert.deepEqual([event.warning.windowMs, event.warning.subscriber], [1_000, 'local'])
    assert.equal(event.warning.redeliveryHorizonMs, bus.redeliveryHorizonMs)
    const patient = another({ consumer: 'patient', windowMs: bus.redeliveryHorizonMs + 1 * DAY })
    await patient.consume(bus, { topics: ['orders'] }, () => {})
    assert.equal(eventsOf(events, 'warning').length, 1)
  }),
)
