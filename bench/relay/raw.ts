import { jetstream } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { Connection } from 'rabbitmq-client'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { RelayTask } from './task.ts'
import { messageOf, openPublisher, TOPIC, timed } from './task.ts'

/** The client library alone, pipelined as deep as the relay, with confirmations and without any database. */
const task = readTask<RelayTask>()
const UNDER_WAY = 2_048

// The adapter makes the queue or the stream; publishing goes past it.
const made = await openPublisher(task)
const messages = Array.from({ length: task.rows }, (_, n) => messageOf(n))
const { send, close } = task.broker === 'rabbitmq' ? rabbitmq() : await nats()
let confirmed = 0
const figures = await timed(task.rows, async () => {
  let next = 0
  const sender = async () => {
    for (let message = messages[next++]; message !== undefined; message = messages[next++]) {
      await send(message)
      confirmed += 1
    }
  }
  await Promise.all(Array.from({ length: UNDER_WAY }, sender))
})
mustEqual('confirmed', confirmed, task.rows)
await close()
await made.close()
answer(figures)

interface Raw {
  send(message: ReturnType<typeof messageOf>): Promise<unknown>
  close(): Promise<void>
}

function rabbitmq(): Raw {
  const connection = new Connection(task.brokerUrl)
  const publisher = connection.createPublisher({ confirm: true, maxAttempts: 1 })
  return {
    send: ({ id, body }) =>
      publisher.send(
        { exchange: task.namespace, routingKey: TOPIC, messageId: id, durable: true, mandatory: true },
        Buffer.from(body),
      ),
    close: () => publisher.close().then(() => connection.close()),
  }
}

async function nats(): Promise<Raw> {
  const connection = await connect({ servers: task.brokerUrl })
  const stream = jetstream(connection)
  return {
    send: ({ id, key, body }) => {
      const own = headers()
      own.set('onceonly-key', key ?? '')
      return stream.publish(`${task.namespace}.${TOPIC}`, body, { msgID: id, headers: own, timeout: 30_000 })
    },
    close: () => connection.close(),
  }
}
