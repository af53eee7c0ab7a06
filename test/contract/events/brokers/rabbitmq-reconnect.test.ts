import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Acknowledgement } from 'onceonly/inbox'
import { until } from '../../../../src/testing/until.ts'
import { createProxy } from '../../../../tools/proxy/index.ts'
import { openRabbitmqWorld, type RabbitmqClient, rabbitmqUrl } from '../../../support/events/brokers/rabbitmq-world.ts'

const CALL = { timeoutMs: 60_000 }
const done: Acknowledgement = { kind: 'done' }
const messageOf = (id: string) => ({ id, topic: 'paid', key: null, sequence: null, body: '{}', headers: {} })

const skip = rabbitmqUrl === undefined && 'there is no RabbitMQ server'

test('after a lost connection one slow effect holds up no other, and counts until it ends', { skip }, async () => {
  const direct = await openRabbitmqWorld(rabbitmqUrl ?? '')
  const proxy = await createProxy({ targetPort: Number(new URL(rabbitmqUrl ?? '').port) })
  const far = await openRabbitmqWorld(proxy.rewrite(rabbitmqUrl ?? ''), direct.namespace)
  const [publisher, consumer] = [await direct.connect(), await far.connect()]
  const slow = Promise.withResolvers<void>()
  const pair = Promise.withResolvers<void>()
  const seen: string[] = []
  let [running, most] = [0, 0]
  /** Messages of the queue that wait at the server, asked for behind what it has handed over. */
  const readyIn = async ({ connection }: RabbitmqClient) =>
    (await connection.queueDeclare({ queue: `${direct.namespace}.billing`, passive: true })).messageCount
  try {
    const subscription = await consumer.subscriber.subscribe(
      { consumer: 'billing', topics: ['paid'], concurrency: 2 },
      async ({ id }) => {
        running += 1
        most = Math.max(most, running)
        seen.push(id)
        if (id === 'slow' && seen.length === 1) await slow.promise
        if (id.startsWith('second')) await pair.promise
        running -= 1
        return done
      },
    )
    await publisher.publisher.publish([messageOf('slow')], CALL)
    await until('the slow one is under way', () => seen.length === 1)
    for (const id of ['first', 'second']) {
      proxy.cut()
      await publisher.publisher.publish([messageOf(id), messageOf(`${id} too`)], CALL)
      if (id === 'second') {
        // Both are handed over, and one waits for the place that the slow one has.
        // A question that leaves before the connection knows that it was cut is lost with it.
        await until('all are handed over', async () => (await readyIn(consumer).catch(() => null)) === 0)
        const begun = () => seen.filter((each) => each.startsWith(id)).length
        await until('one is under way', begun)
        assert.equal(begun(), 1)
        pair.resolve()
      }
      await until(`${id} is handled`, () => seen.includes(id) && seen.includes(`${id} too`))
    }
    // What the lost connection had handed over came again, beside the effect that still runs.
    await until('the slow one came again', () => seen.filter((id) => id === 'slow').length >= 2)
    // A stop waits for it, too, and leaves what comes meanwhile to others.
    let stopped = false
    const stopping = subscription.stop().then(() => (stopped = true))
    const others: string[] = []
    await publisher.subscriber.subscribe({ consumer: 'billing', topics: ['paid'], concurrency: 1 }, async ({ id }) => {
      others.push(id)
      return done
    })
    for (const id of ['third', 'fourth']) {
      await publisher.publisher.publish([messageOf(id)], CALL)
      await until(`${id} is handled elsewhere`, () => others.includes(id))
    }
    assert.deepEqual([stopped, running, most], [false, 1, 2])
    slow.resolve()
    await stopping
    assert.equal(running, 0)
  } finally {
    slow.resolve()
    pair.resolve()
    await publisher.stop()
    await consumer.stop()
    await far.end()
    await direct.end()
    await proxy.stop()
  }
})
