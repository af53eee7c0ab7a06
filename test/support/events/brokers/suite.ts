import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Acknowledgement, IncomingMessage, Subscriber, Subscription } from 'onceonly/inbox'
import type { OutgoingMessage, Published, Publisher } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'

/** One process's connection to a broker. */
export interface BrokerClient {
  readonly publisher: Publisher
  readonly subscriber: Subscriber
  /** Ends as if its process had been killed: nothing is acknowledged or given back. */
  crash(): Promise<void>
  /** Ends in order, also after a crash. */
  stop(): Promise<void>
}

/** A broker under test: fresh for every test, so that queues of one do not disturb another. */
export interface BrokerWorld {
  connect(): Promise<BrokerClient>
  /** Waits until the broker takes silent consumers for dead; left out where it notices by itself. */
  silence?(): Promise<void>
  end(): Promise<void>
}

export interface BrokerSubject {
  readonly name: string
  /** Why it is left out, or false. */
  readonly skip: string | false
  /** `crashes` when a test waits for the broker to notice that a consumer is gone; others must not be taken for dead. */
  open(crashes: boolean): Promise<BrokerWorld>
}

const CALL = { timeoutMs: 60_000 }
const done: Acknowledgement = { kind: 'done' }

interface Ground {
  /** The first client; `connect` gives others. All of them end with the test. */
  readonly client: BrokerClient
  connect(): Promise<BrokerClient>
  silence(): Promise<void>
}

/** What relays and inboxes rely on, whatever the broker. */
export function proveBroker(subject: BrokerSubject): void {
  describe(`broker: ${subject.name}`, () => {
    for (const [title, body] of Object.entries(proofs)) {
      test(title, { skip: subject.skip }, async () => {
        const world = await subject.open(title === CRASH)
        const clients: BrokerClient[] = []
        const connect = async () => {
          const client = await world.connect()
          clients.push(client)
          return client
        }
        try {
          await body({ client: await connect(), connect, silence: async () => world.silence?.() })
        } finally {
          for (const client of clients) await client.stop()
          await world.end()
        }
      })
    }
  })
}

const CRASH = 'what a crashed consumer held comes to another, counted'

const proofs: Record<string, (ground: Ground) => Promise<void>> = {
  'a message arrives as it was published': async ({ client }) => {
    const { got, subscription } = await collect(client, 'billing', ['orders.paid'])
    const sent = {
      ...messageOf('m-1', 'orders.paid', 'order ☃ 7'),
      sequence: 12,
      body: '{"a":"☃\\u0000 𝄞","b":[1.50,null]}',
      headers: { 'trace-id': 'abc', note: 'two words' },
    }
    assert.deepEqual(await client.publisher.publish([sent], CALL), [{ kind: 'confirmed' }])
    const [message] = await got.until(1)
    assert.deepEqual({ ...message, deliveries: 1 }, { ...sent, deliveries: 1 })
    assert.ok(message?.deliveries === null || message?.deliveries === 1)
    await subscription.stop()
  },

  'a message without a key, a number and headers is complete too': async ({ client }) => {
    const { got } = await collect(client, 'billing', ['orders.paid'])
    const sent = messageOf('m-1', 'orders.paid', null)
    assert.deepEqual(await client.publisher.publish([sent], CALL), [{ kind: 'confirmed' }])
    const [message] = await got.until(1)
    assert.deepEqual([message?.key, message?.sequence, message?.headers], [null, null, {}])
  },

  'one call keeps its order, and answers for every message': async ({ client }) => {
    const { got } = await collect(client, 'billing', ['orders.paid'], 1)
    const sent = many(300, (n) => ({
      ...messageOf(`m-${n}`, 'orders.paid', `k-${n % 7}`),
      sequence: Math.floor(n / 7) + 1,
    }))
    const answers = await client.publisher.publish(sent, CALL)
    assert.deepEqual(kindsOf(answers), Array(300).fill('confirmed'))
    assert.deepEqual(idsOf(await got.until(300)), idsOf(sent))
    assert.deepEqual(await client.publisher.publish([], CALL), [])
  },

  'a message without a subscriber is refused alone, and never delivered': async ({ client }) => {
    const { got } = await collect(client, 'billing', ['orders.paid'])
    const sent = [
      messageOf('m-1', 'orders.paid', null),
      messageOf('m-2', 'orders.unheard-of', null),
      messageOf('m-3', 'orders.paid', null),
    ]
    const answers = await client.publisher.publish(sent, CALL)
    assert.deepEqual(kindsOf(answers), ['confirmed', 'refused', 'confirmed'])
    assert.deepEqual(idsOf(await got.until(2)).toSorted(), ['m-1', 'm-3'])
  },

  'after a refusal the later messages of that key are not confirmed, those of others are': async ({ client }) => {
    await collect(client, 'billing', ['orders.paid'])
    const sent = [
      messageOf('m-1', 'orders.unheard-of', 'a'),
      messageOf('m-2', 'orders.paid', 'a'),
      messageOf('m-3', 'orders.paid', 'b'),
    ]
    const [first, second, third] = kindsOf(await client.publisher.publish(sent, CALL))
    assert.equal(first, 'refused')
    assert.notEqual(second, 'confirmed')
    assert.equal(third, 'confirmed')
  },

  'who throws gets it again, counted': async ({ client }) => {
    let turn = 0
    const { got } = await collect(client, 'billing', ['orders.paid'], 1, async () => {
      turn += 1
      if (turn < 3) throw new Error('not yet')
      return done
    })
    await client.publisher.publish([messageOf('m-1', 'orders.paid', 'a')], CALL)
    const copies = await got.until(3)
    assert.deepEqual(idsOf(copies), ['m-1', 'm-1', 'm-1'])
    assertCounted(copies)
  },

  'later means not before that time, and others pass by': async ({ client }) => {
    // A busy machine may stall for the whole delay: then no other passed by, and a longer delay shows that they do.
    for (const delayMs of [1_500, 6_000, 24_000]) {
      const topic = `orders.${delayMs}`
      const times: number[] = []
      const { got, subscription } = await collect(client, `billing-${delayMs}`, [topic], 1, async ({ id }) => {
        if (id !== 'm-1') return done
        times.push(performance.now())
        return times.length === 1 ? { kind: 'later', delayMs } : done
      })
      const sent = ['m-1', 'm-2'].map((id) => messageOf(id, topic, null))
      await client.publisher.publish(sent, CALL)
      const copies = await got.until(3)
      const [first = 0, second = 0] = times
      assert.ok(second - first >= delayMs - 100, `it came again after ${Math.round(second - first)} ms`)
      assertCounted(copies.filter(({ id }) => id === 'm-1'))
      await subscription.stop()
      if (idsOf(copies).join() === 'm-1,m-2,m-1') return
    }
    assert.fail('The other one waited, too.')
  },

  'every group gets everything, and those of one group share it': async ({ client, connect }) => {
    const other = await connect()
    const audit = await collect(client, 'audit', ['orders.paid'], 4)
    const [one, two] = [
      await collect(client, 'billing', ['orders.paid'], 4),
      await collect(other, 'billing', ['orders.paid'], 4),
    ]
    const sent = many(60, (n) => messageOf(`m-${n}`, 'orders.paid', null))
    await client.publisher.publish(sent, CALL)
    assert.deepEqual(idsOf(await audit.got.until(60)).toSorted(), idsOf(sent).toSorted())
    const count = () => one.got.messages.length + two.got.messages.length
    await until('the group has everything', count, (got) => got >= 60)
    const shared = [...one.got.messages, ...two.got.messages]
    assert.deepEqual(idsOf(shared).toSorted(), idsOf(sent).toSorted())
  },

  'one subscription may have several topics, and gets no others': async ({ client }) => {
    await collect(client, 'audit', ['orders.lost'])
    const { got } = await collect(client, 'billing', ['orders.paid', 'orders.sent'])
    await client.publisher.publish(
      ['orders.paid', 'orders.lost', 'orders.sent'].map((topic) => messageOf(topic, topic, null)),
      CALL,
    )
    assert.deepEqual(idsOf(await got.until(2)).toSorted(), ['orders.paid', 'orders.sent'])
  },

  'messages wait for a group that is away': async ({ client }) => {
    const { subscription } = await collect(client, 'billing', ['orders.paid'])
    await subscription.stop()
    const sent = many(20, (n) => messageOf(`m-${n}`, 'orders.paid', null))
    assert.deepEqual(kindsOf(await client.publisher.publish(sent, CALL)), Array(20).fill('confirmed'))
    const { got } = await collect(client, 'billing', ['orders.paid'], 1)
    assert.deepEqual(idsOf(await got.until(20)), idsOf(sent))
  },

  [CRASH]: async ({ client, connect, silence }) => {
    const doomed = await connect()
    const never = Promise.withResolvers<Acknowledgement>()
    const held = await collect(doomed, 'billing', ['orders.paid'], 3, () => never.promise)
    const sent = many(3, (n) => messageOf(`m-${n}`, 'orders.paid', null))
    await client.publisher.publish(sent, CALL)
    await held.got.all(sent)
    await doomed.crash()
    const { got } = await collect(client, 'billing', ['orders.paid'], 3)
    await silence()
    const copies = await got.all(sent)
    assert.ok(copies.every(({ deliveries }) => deliveries === null || deliveries >= 2))
    // Only now, so that the end of the test need not wait for it.
    never.resolve(done)
  },

  'at most so many are under way as was asked for': async ({ client }) => {
    let [running, most] = [0, 0]
    const full = Promise.withResolvers<void>()
    const { got } = await collect(client, 'billing', ['orders.paid'], 3, async () => {
      running += 1
      most = Math.max(most, running)
      await full.promise
      running -= 1
      return done
    })
    await client.publisher.publish(
      many(30, (n) => messageOf(`m-${n}`, 'orders.paid', null)),
      CALL,
    )
    // None ends before as many are under way as may be: a broker that goes beyond it has more to hand over.
    await until('three are under way', () => running >= 3)
    full.resolve()
    await got.until(30)
    assert.equal(most, 3)
  },

  'stop waits for what is under way, and gives the rest to others': async ({ client, connect }) => {
    const other = await connect()
    const finish = Promise.withResolvers<Acknowledgement>()
    const first = await collect(client, 'billing', ['orders.paid'], 1, () => finish.promise)
    const sent = many(10, (n) => messageOf(`m-${n}`, 'orders.paid', null))
    await client.publisher.publish(sent, CALL)
    await first.got.until(1)
    let over = false
    const stopping = first.subscription.stop().then(() => {
      over = true
    })
    const second = await collect(other, 'billing', ['orders.paid'], 1)
    await second.got.until(9)
    assert.equal(over, false)
    finish.resolve(done)
    await stopping
    assert.deepEqual(idsOf([...first.got.messages, ...second.got.messages]).toSorted(), idsOf(sent).toSorted())
  },
}

interface Got {
  readonly messages: IncomingMessage[]
  /** Waits for so many deliveries, copies included. */
  until(count: number): Promise<readonly IncomingMessage[]>
  /** Waits for each of these, however often it came, and for no other. */
  all(sent: readonly OutgoingMessage[]): Promise<readonly IncomingMessage[]>
}

/** Subscribes and writes down every delivery, in the order in which they came. */
async function collect(
  { subscriber }: BrokerClient,
  consumer: string,
  topics: readonly string[],
  concurrency = 1,
  receive: (message: IncomingMessage) => Promise<Acknowledgement> = async () => done,
): Promise<{ readonly got: Got; readonly subscription: Subscription }> {
  const messages: IncomingMessage[] = []
  const subscription = await subscriber.subscribe({ consumer, topics, concurrency }, (message) => {
    messages.push(message)
    return receive(message)
  })
  const got = {
    messages,
    until: async (count: number) => {
      await until(
        `${count} deliveries`,
        () => idsOf(messages),
        ({ length }) => length >= count,
      )
      return messages
    },
    all: async (sent: readonly OutgoingMessage[]) => {
      const wanted = idsOf(sent).toSorted()
      await until(
        `deliveries of ${wanted.join(', ')}`,
        () => [...new Set(idsOf(messages))].toSorted(),
        (ids) => ids.join() === wanted.join(),
      )
      return messages
    },
  }
  return { got, subscription }
}

function messageOf(id: string, topic: string, key: string | null): OutgoingMessage {
  return { id, topic, key, sequence: key === null ? null : 1, body: '{}', headers: {} }
}

/** A broker that counts, counts from 1, one by one. */
function assertCounted(copies: readonly IncomingMessage[]): void {
  const counts = copies.map(({ deliveries }) => deliveries)
  if (counts[0] !== null)
    assert.deepEqual(
      counts,
      [...copies.keys()].map((index) => index + 1),
    )
}

function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n))
}

const kindsOf = (answers: readonly Published[]) => answers.map(({ kind }) => kind)
const idsOf = (messages: readonly { readonly id: string }[]) => messages.map(({ id }) => id)
