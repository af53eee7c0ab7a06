import assert from 'node:assert/strict'
import type { SqlStore } from 'onceonly'
import { createLocalBus } from 'onceonly/local'
import { until } from '../../../../src/testing/until.ts'
import type { BrokerClient } from '../../../support/events/brokers/suite.ts'
import { proveBroker } from '../../../support/events/brokers/suite.ts'
import { createPlace, onEveryPlace, placeKinds, skipOf, sqlStore } from '../../../support/place.ts'

/** Longer than a busy machine stalls; where it has to end, the store's clock is moved. */
const LEASE_MS = 60_000

for (const kind of placeKinds) {
  proveBroker({
    name: `local on ${kind}`,
    skip: skipOf(kind),
    async open() {
      const place = await createPlace(kind)
      return {
        connect: async () => clientOn(sqlStore(place.another())),
        silence: () => place.advance(LEASE_MS),
        end: () => place.end(),
      }
    },
  })
}

/** A store of its own for every client, as another process has it. */
function clientOn(store: SqlStore): BrokerClient {
  const bus = createLocalBus({ store, leaseMs: LEASE_MS, retryMs: 100 })
  return {
    publisher: bus,
    subscriber: bus,
    crash: () => store.stop(),
    stop: () => bus.stop(),
  }
}

onEveryPlace('a consumer that waits for messages only reads, so that no writer waits for it', async (place) => {
  const asked: string[] = []
  const store = sqlStore(place.another())
  const query: SqlStore['sql']['query'] = (text, values) => {
    asked.push(text)
    return store.sql.query(text, values)
  }
  const waiting = createLocalBus({ store: { ...store, sql: { ...store.sql, query } } })
  const bus = createLocalBus({ store: sqlStore(place.another()) })
  const got: string[] = []
  const to = (topic: string) => ({ consumer: topic, topics: [topic], concurrency: 2 })
  const take = async ({ id }: { readonly id: string }) => {
    got.push(id)
    return { kind: 'done' } as const
  }
  try {
    await waiting.subscribe(to('paid'), take)
    await (await bus.subscribe(to('sent'), take)).stop()
    const publish = async (id: string, topic: string) => {
      const message = { id, topic, key: null, sequence: null, body: '1', headers: {} }
      assert.deepEqual(await bus.publish([message], { timeoutMs: 60_000 }), [{ kind: 'confirmed' }])
    }
    const looks = (kind: string) => asked.filter((text) => text.startsWith(kind) && text.includes('free_at')).length
    await until('it has looked for messages', () => looks('UPDATE') === 1)
    // It is notified of messages that are not for it, and polls.
    for (let n = 1; n <= 3; n++) {
      const before = looks('SELECT')
      await publish(`other-${n}`, 'sent')
      await until('it has looked whether one is for it', () => looks('SELECT') > before)
    }
    assert.equal(looks('UPDATE'), 1)
    await publish('own', 'paid')
    await until('its own message came', () => got.length === 1)
    assert.deepEqual(got, ['own'])
  } finally {
    await waiting.stop()
    await bus.stop()
  }
})

onEveryPlace('the late answer of a receiver whose lease ended leaves the next delivery alone', async (place) => {
  const store = sqlStore(place.another())
  const bus = createLocalBus({ store, leaseMs: LEASE_MS, retryMs: 100 })
  const answers: PromiseWithResolvers<{ readonly kind: 'done' }>[] = []
  const subscription = { consumer: 'billing', topics: ['paid'], concurrency: 2 }
  const waiting = async () => {
    const [row] = await store.sql.query<{ n: unknown }>('select count(*) as n from onceonly_local_deliveries')
    return Number(row?.n)
  }
  try {
    await bus.subscribe(subscription, () => {
      const answer = Promise.withResolvers<{ readonly kind: 'done' }>()
      answers.push(answer)
      return answer.promise
    })
    const publish = (id: string) =>
      bus.publish([{ id, topic: 'paid', key: null, sequence: null, body: '1', headers: {} }], { timeoutMs: 60_000 })
    await publish('first')
    await until('the message was handed over', () => answers.length === 1)
    // The store's clock alone has passed the lease, as for a process that was suspended: the same bus takes it again.
    await place.advance(LEASE_MS + 1)
    await until('it was handed over again', () => answers.length === 2)
    answers[0]?.resolve({ kind: 'done' })
    // Its place is free again once the late answer was written.
    await publish('second')
    await until('there was place for the next message', () => answers.length === 3)
    assert.equal(await waiting(), 2)
    answers[1]?.resolve({ kind: 'done' })
    answers[2]?.resolve({ kind: 'done' })
    await until('both messages are acknowledged', async () => (await waiting()) === 0)
  } finally {
    for (const answer of answers) answer.resolve({ kind: 'done' })
    await bus.stop()
  }
})
