import assert from 'node:assert/strict'
import type { IncomingMessage, Subscriber } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import type { OutgoingMessage } from 'onceonly/outbox'
import { cancelled, onEveryStage, parsed, saved, started } from '../../../support/events/saga/stage.ts'
import { sqlStore } from '../../../support/place.ts'

const outgoing = ({ id, topic, body }: IncomingMessage): OutgoingMessage => {
  return { id, topic, key: null, sequence: null, body, headers: {} }
}

onEveryStage('messages that come twice and in any order, from a broker, to two replicas', async (stage) => {
  const ids = ['s1', 's2', 's3']
  const completed = Promise.withResolvers<void>()
  let left = ids.length
  const buses = [1, 2].map(() => createLocalBus({ store: sqlStore(stage.place.another()), retryMs: 100 }))
  const replicas = buses.map(() =>
    stage.another(
      {},
      {
        background: true,
        dueEveryMs: 200,
        on: (event) => {
          if (event.kind === 'handled' && event.path.includes('Completed') && --left === 0) completed.resolve()
        },
      },
    ),
  )
  try {
    for (const [index, { saga }] of replicas.entries()) {
      const bus = buses[index]
      assert.ok(bus !== undefined)
      await saga.consume(bus, { concurrency: 4 })
    }
    const all = ids.flatMap((id) => [parsed(id, 'b'), saved(id, ['a', 'b']), parsed(id, 'a'), started(id)])
    const twice = [...all, ...all.toReversed()].map(outgoing)
    const published = await buses[0]?.publish(twice, { timeoutMs: 20_000 })
    assert.ok(published?.every(({ kind }) => kind === 'confirmed'))
    await completed.promise
    const lines = await stage.sent()
    assert.equal(lines.filter((line) => line.startsWith('StartParsing ')).length, 2 * ids.length)
    assert.equal(lines.filter((line) => line.startsWith('ImportCompleted ')).length, ids.length)
    assert.equal(await replicas[0]?.saga.deadLetters.count(), 0)
  } finally {
    for (const { saga } of replicas) await saga.stop()
    for (const bus of buses) await bus.stop()
  }
})

onEveryStage(
  'a saga subscribes to its events, settles them at the broker, and warns of a short retention',
  async (stage) => {
    const one = stage.replica({}, { inbox: { windowMs: 1_000 } })
    const subscribed: { topics: readonly string[]; consumer: string }[] = []
    const answers: string[] = []
    let stops = 0
    const subscriber: Subscriber = {
      name: 'paper',
      redeliveryHorizonMs: 2_000,
      async subscribe(options, receive) {
        subscribed.push(options)
        for (const each of [started('s1'), { ...cancelled('s1'), body: '{' }]) {
          const acknowledgement = await receive(each)
          answers.push(acknowledgement.kind)
        }
        return { stop: async () => void stops++ }
      },
    }
    await one.saga.consume(subscriber)
    assert.deepEqual(
      subscribed.map(({ topics, consumer }) => [consumer, topics]),
      [['saga.imports', ['Started', 'Saved', 'parsed', 'Faulted', 'Cancelled']]],
    )
    assert.deepEqual(answers, ['done', 'done'])
    assert.ok(one.events.some((event) => event.kind === 'window_too_short'))
    await one.saga.stop()
    await one.saga.stop()
    assert.equal(stops, 1)
  },
)
