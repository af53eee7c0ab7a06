import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { Acknowledgement, IncomingMessage } from 'onceonly/inbox'
import type { OutgoingMessage } from 'onceonly/outbox'
import { createRabbitmqBroker } from 'onceonly/rabbitmq'
import { until } from '../../../../src/testing/until.ts'
import { openRabbitmqWorld, type RabbitmqClient, rabbitmqUrl } from '../../../support/events/brokers/rabbitmq-world.ts'

const CALL = { timeoutMs: 60_000 }
const done: Acknowledgement = { kind: 'done' }
const confirmed = { kind: 'confirmed' }

describe('rabbitmq in detail', { skip: rabbitmqUrl === undefined && 'there is no RabbitMQ server' }, () => {
  proof('headers that are orders to the server arrive and order nothing', async (client, namespace) => {
    const copies = await collect(client, 'billing')
    await client.connection.queueDeclare({ queue: `${namespace}.spy`, autoDelete: true })
    const headers = {
      CC: `${namespace}.spy`,
      BCC: 'x',
      'x-death': 'y',
      'onceonly-key': 'z',
      'a b': 'c\r\nd: e',
      plain: 'p',
    }
    const sent = { ...message('m-1'), headers }
    assert.deepEqual(await client.publisher.publish([sent], CALL), [confirmed])
    await until('the message came', () => copies.length === 1)
    assert.deepEqual(copies[0], { ...sent, deliveries: 1 })
    assert.equal(await client.connection.basicGet(`${namespace}.spy`), undefined)
    await client.connection.queueDelete(`${namespace}.spy`)
  })

  proof('the count of deliveries survives waits and a crash', async (client, _namespace, connect) => {
    const doomed = await connect()
    const counts: (number | null)[] = []
    const hold = Promise.withResolvers<Acknowledgement>()
    await subscribe(doomed, 'billing', async ({ deliveries }) => {
      counts.push(deliveries)
      return counts.length < 3 ? { kind: 'later', delayMs: 50 } : hold.promise
    })
    await client.publisher.publish([message('m-1')], CALL)
    await until('it came three times', () => counts.length === 3)
    await doomed.crash()
    const copies = await collect(client, 'billing')
    await until('the message came', () => copies.length === 1)
    hold.resolve(done)
    assert.deepEqual([...counts, copies[0]?.deliveries], [1, 2, 3, 4])
  })

  proof('a refusal of the server is not taken for an outage: its reason is reported', async (client, namespace) => {
    await client.connection.exchangeDeclare({ exchange: namespace, type: 'fanout', durable: true })
    const [answer] = await client.publisher.publish([message('m-1')], CALL)
    assert.ok(answer?.kind === 'unavailable')
    assert.match(answer.reason, /inequivalent arg 'type' for exchange/)
  })

  proof('a long wait does not hold up a short one', async (client) => {
    const order: string[] = []
    await subscribe(client, 'billing', async ({ id, deliveries }) => {
      order.push(`${id}/${deliveries}`)
      if (deliveries !== 1) return done
      return { kind: 'later', delayMs: id === 'long' ? 60_000 : 300 }
    })
    await client.publisher.publish([message('long')], CALL)
    await until('the long one is put off', () => order.length === 1)
    await client.publisher.publish([message('short')], CALL)
    await until('the short one came again', () => order.length === 3)
    assert.deepEqual(order, ['long/1', 'short/1', 'short/2'])
  })

  proof('a queue for waits that was removed is created again', async (client, namespace) => {
    const copies: IncomingMessage[] = []
    await subscribe(client, 'billing', async (copy) => {
      copies.push(copy)
      if (copy.deliveries === 2) await client.connection.queueDelete(`${namespace}.billing.later.250`)
      return (copy.deliveries ?? 0) < 3 ? { kind: 'later', delayMs: 100 } : done
    })
    await client.publisher.publish([message('m-1')], CALL)
    await until('it came three times', () => copies.length === 3)
    assert.deepEqual(
      copies.map(({ deliveries }) => deliveries),
      [1, 2, 3],
    )
  })

  proof(
    'a message for which the server closes the channel is refused, and takes no other with it',
    async (client, namespace) => {
      const copies = await collect(client, 'billing')
      const batch = [message('m-1'), message('poison'), message('m-2')]
      const tampered = tamper(client, namespace, 'poison')
      let answers = await tampered.publish(batch, CALL)
      assert.ok(answers.every(({ kind }) => kind !== 'refused'))
      answers = await tampered.publish(batch, CALL)
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['confirmed', 'refused', 'confirmed'],
      )
      await until('the two others came', () => new Set(copies.map(({ id }) => id)).size === 2)
      assert.ok(!copies.some(({ id }) => id === 'poison'))
      await tampered.stop()
    },
  )

  proof('what another program sends is handed over as it is', async (client, namespace) => {
    const copies = await collect(client, 'billing')
    const channel = await client.connection.acquire()
    await channel.basicPublish({ exchange: namespace, routingKey: 'paid', headers: { tries: 3 } }, { n: 1 })
    await channel.basicPublish({ exchange: namespace, routingKey: 'paid', messageId: 'theirs' }, Buffer.from('{broken'))
    await until('both messages came', () => copies.length === 2)
    assert.deepEqual(
      copies.map(({ id, topic, body, headers }) => ({ id, topic, body, headers })),
      [
        { id: '', topic: 'paid', body: '{"n":1}', headers: { tries: '3' } },
        { id: 'theirs', topic: 'paid', body: '{broken', headers: {} },
      ],
    )
    await channel.close()
  })

  proof('a queue with other arguments is reported at once', async (client, namespace) => {
    const queue = `${namespace}.billing`
    await client.connection.queueDeclare({ queue, durable: true })
    await assert.rejects(
      subscribe(client, 'billing', async () => done),
      (error) => isOnceError(error, 'broker_unavailable') && error.message.includes(queue),
    )
  })

  test('options that cannot be are named', async () => {
    const world = await openRabbitmqWorld(rabbitmqUrl ?? '')
    const client = await world.connect()
    const { connection } = client
    assert.throws(() => createRabbitmqBroker({ connection, namespace: 'a.b' }), /`namespace`/)
    const subscription = { consumer: 'c', topics: ['t'], concurrency: 1 }
    for (const [wrong, named] of [
      [{ consumer: '' }, /`consumer`/],
      [{ consumer: 'c'.repeat(230) }, /`consumer` is too long/],
      [{ topics: [] }, /`topics`/],
      [{ topics: ['t'.repeat(256)] }, /topic/],
      [{ concurrency: 0 }, /`concurrency`/],
    ] as const) {
      await assert.rejects(
        client.broker.subscribe({ ...subscription, ...wrong }, async () => done),
        (error) => isOnceError(error, 'bad_option') && named.test(error.message),
      )
    }
    await client.stop()
    await world.end()
  })
})

type Proof = (client: RabbitmqClient, namespace: string, connect: () => Promise<RabbitmqClient>) => Promise<void>

function proof(title: string, body: Proof): void {
  test(title, async () => {
    const world = await openRabbitmqWorld(rabbitmqUrl ?? '')
    const clients: RabbitmqClient[] = []
    const connect = async () => {
      const client = await world.connect()
      clients.push(client)
      return client
    }
    try {
      await body(await connect(), world.namespace, connect)
    } finally {
      for (const client of clients) await client.stop()
      await world.end()
    }
  })
}

/** A broker on a connection that gives one message an expiry which no server accepts. */
function tamper({ connection }: RabbitmqClient, namespace: string, id: string) {
  return createRabbitmqBroker({
    namespace,
    connection: {
      get ready() {
        return connection.ready
      },
      on: (event, listener) => connection.on(event, listener),
      async acquire() {
        const channel = await connection.acquire()
        const publish = channel.basicPublish.bind(channel)
        return Object.assign(channel, {
          basicPublish: (envelope: Parameters<typeof publish>[0], body: Buffer) =>
            publish(
              typeof envelope === 'object' && envelope.messageId === id
                ? { ...envelope, expiration: 'never' }
                : envelope,
              body,
            ),
        })
      },
    },
  })
}

async function collect(client: RabbitmqClient, consumer: string): Promise<IncomingMessage[]> {
  const copies: IncomingMessage[] = []
  await subscribe(client, consumer, async (copy) => {
    copies.push(copy)
    return done
  })
  return copies
}

function subscribe(
  { subscriber }: RabbitmqClient,
  consumer: string,
  receive: (message: IncomingMessage) => Promise<Acknowledgement>,
) {
  return subscriber.subscribe({ consumer, topics: ['paid'], concurrency: 1 }, receive)
}

function message(id: string): OutgoingMessage {
  return { id, topic: 'paid', key: null, sequence: null, body: '{}', headers: {} }
}
