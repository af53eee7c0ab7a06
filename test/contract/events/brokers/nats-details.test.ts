import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { isOnceError } from 'onceonly'
import type { Acknowledgement, IncomingMessage } from 'onceonly/inbox'
import type { OutgoingMessage } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'
import {
  type NatsClient,
  type NatsWorld,
  natsUrl,
  openNatsWorld,
  PATIENT_ACK_WAIT_MS,
} from '../../../support/events/brokers/nats-world.ts'

const CALL = { timeoutMs: 60_000 }
/** More than the server accepts, which is 1 MiB by default. */
const TOO_LARGE = 1_100_000
/** Short, because a test outlives it, and longer than a busy machine pauses between two heartbeats. */
const ACK_WAIT_MS = 3_000
const done: Acknowledgement = { kind: 'done' }
const confirmed = { kind: 'confirmed' }

describe('nats in detail', { skip: natsUrl === undefined && 'there is no NATS server' }, () => {
  proof('headers and topics that mean something to the server arrive and order nothing', async (client) => {
    const topics = ['a b.*', '>', '..', 'ü%41']
    const copies = await collect(client, 'billing.eu/west', topics)
    const headers = {
      'Nats-Rollup': 'all',
      'nats-expected-stream': 'other',
      'Onceonly-Key': 'k',
      'a:b': 'c\r\nd: e',
      p: ' q ',
    }
    const sent = topics.map((topic, n) => ({ ...message(`m ${n}`), topic, headers }))
    assert.deepEqual(
      await client.publisher.publish(sent, CALL),
      sent.map(() => confirmed),
    )
    await until('every topic has brought its message', () => copies.length === topics.length)
    assert.deepEqual(
      copies.toSorted((one, other) => one.id.localeCompare(other.id)),
      sent.map((one) => ({ ...one, deliveries: 1 })),
    )
  })

  proof('a copy within the window of the stream is confirmed and not delivered again', async (client) => {
    const copies = await collect(client)
    for (const id of ['m-1', 'm-1', 'm-2']) {
      assert.deepEqual(await client.publisher.publish([message(id)], CALL), [confirmed])
    }
    await until('both messages came', () => copies.length === 2)
    assert.deepEqual(
      copies.map(({ id }) => id),
      ['m-1', 'm-2'],
    )
    // A message that an operator sends again is no copy, although it is the same message.
    const redriven = {
      ...message('m-1'),
      headers: { 'onceonly-redriven-as': 'r-1', 'onceonly-redriven-for': 'billing' },
    }
    assert.deepEqual(await client.publisher.publish([redriven], CALL), [confirmed])
    await until('the redriven message came', () => copies.length === 3)
    assert.deepEqual(copies[2], { ...redriven, deliveries: 1 })
  })

  proof('what is larger than the server takes is refused, and stops only its own key', async (client) => {
    const copies = await collect(client)
    const answers = await client.publisher.publish(
      [
        { ...message('m-1'), key: 'a', body: `"${'x'.repeat(TOO_LARGE)}"` },
        { ...message('m-2'), key: 'a' },
        { ...message('m-3'), key: 'b' },
      ],
      CALL,
    )
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['refused', 'unavailable', 'confirmed'],
    )
    await until('the message came', () => copies.length === 1)
    assert.equal(copies[0]?.id, 'm-3')
  })

  proof('an effect that takes longer than the server waits is not handed over twice', async (client, world) => {
    const slow = await world.connect({ ackWaitMs: ACK_WAIT_MS })
    const copies: IncomingMessage[] = []
    await slow.subscriber.subscribe({ consumer: 'slow', topics: ['paid'], concurrency: 1 }, async (copy) => {
      copies.push(copy)
      if (copy.id === 'm-1') await sleep(1.2 * ACK_WAIT_MS)
      return done
    })
    await client.publisher.publish([message('m-1'), message('m-2')], CALL)
    await until('both messages came', () => copies.length === 2)
    await slow.stop()
    assert.deepEqual(
      copies.map(({ id, deliveries }) => `${id}/${deliveries}`),
      ['m-1/1', 'm-2/1'],
    )
  })

  proof('a consumer that was removed is created again', async (client, world) => {
    const copies = await collect(client)
    await client.publisher.publish([message('m-1')], CALL)
    await until('the message came', () => copies.length === 1)
    const { streams, consumers } = await jetstreamManager(client.connection)
    const stream = await streams.find(`${world.namespace}.paid`)
    const [{ name } = { name: '' }] = await consumers.list(stream).next()
    await consumers.delete(stream, name)
    await until('there is a consumer again', async () => (await consumers.list(stream).next()).length === 1)
    await client.publisher.publish([message('m-2')], CALL)
    await until('both messages came', () => copies.length === 2)
  })

  proof('streams of your own are used as they are', async (_client, world) => {
    const client = await world.connect({ declare: false, deliver: 'all' })
    const [refused] = await client.publisher.publish([message('m-1')], CALL)
    assert.equal(refused?.kind, 'refused')
    await assert.rejects(collect(client), (error) => isOnceError(error, 'broker_unavailable'))

    const { streams } = await jetstreamManager(client.connection)
    await streams.add({ name: `own-${world.namespace}`, subjects: [`${world.namespace}.>`] })
    assert.deepEqual(await client.publisher.publish([message('m-1')], CALL), [confirmed])
    // What another program publishes has the place in the stream for an id.
    await jetstream(client.connection).publish(`${world.namespace}.paid`, '{"n":1}')
    const copies = await collect(client)
    await until('both messages came', () => copies.length === 2)
    assert.deepEqual(
      copies.map(({ id, topic, body }) => ({ id, topic, body })),
      [
        { id: 'm-1', topic: 'paid', body: '{}' },
        { id: `own-${world.namespace}:2`, topic: 'paid', body: '{"n":1}' },
      ],
    )
  })

  proof('a subject of another stream is refused, not confirmed without a subscriber', async (client, world) => {
    const { streams } = await jetstreamManager(client.connection)
    await streams.add({ name: `other-${world.namespace}`, subjects: [`${world.namespace}.>`] })
    const [answer] = await client.publisher.publish([message('m-1')], CALL)
    assert.equal(answer?.kind, 'refused')
  })
})

type Proof = (client: NatsClient, world: NatsWorld) => Promise<void>

function proof(title: string, body: Proof): void {
  test(title, async () => {
    const world = await openNatsWorld(natsUrl ?? '', PATIENT_ACK_WAIT_MS)
    const clients: NatsClient[] = []
    const connect: NatsWorld['connect'] = async (options) => {
      const client = await world.connect(options)
      clients.push(client)
      return client
    }
    try {
      await body(await connect(), { ...world, connect })
    } finally {
      for (const client of clients) await client.stop()
      await world.end()
    }
  })
}

async function collect(
  { subscriber }: NatsClient,
  consumer = 'billing',
  topics = ['paid'],
): Promise<IncomingMessage[]> {
  const copies: IncomingMessage[] = []
  await subscriber.subscribe({ consumer, topics, concurrency: 2 }, async (copy) => {
    copies.push(copy)
    return done
  })
  return copies
}

function message(id: string): OutgoingMessage {
  return { id, topic: 'paid', key: null, sequence: null, body: '{}', headers: {} }
}
