import { setTimeout as sleep } from 'node:timers/promises'
import { brokerLimits } from '../../../ledger/core/limits.ts'
import { createSlots } from '../../../runtime/slots.ts'
import type { Receive, SubscribeOptions, Subscription } from '../../inbox/port.ts'
import { reconnectMs } from '../options.ts'
import type { NatsJetStream, NatsMessage, NatsMessages } from './driver.ts'
import { incomingOf } from './message.ts'
import type { Topology } from './topology.ts'

export interface Consuming {
  readonly jetstream: NatsJetStream
  readonly topology: Topology
  readonly namespace: string
  readonly onError: (error: unknown) => void
}

/** Settles when every topic has its durable consumer: from then on nothing that is published passes by. */
export async function consume(
  { jetstream, topology, namespace, onError }: Consuming,
  { consumer, topics, concurrency }: SubscribeOptions,
  receive: Receive,
): Promise<Subscription> {
  const slots = createSlots(concurrency)
  const stopping = new AbortController()
  const fetches = new Set<NatsMessages>()
  for (const topic of topics) await topology.ensureConsumer(consumer, topic)
  const loops = topics.map((topic) => consumeTopic(topic))

  async function consumeTopic(topic: string): Promise<void> {
    // Effects of a lost connection continue, and still count against the limit of the next one.
    const held = new Set<Promise<void>>()
    let failures = 0
    while (!stopping.signal.aborted) {
      try {
        await fetchUntilStopped(topic, held, () => (failures = 0))
      } catch (error) {
        if (stopping.signal.aborted) break
        onError(error)
        await sleep(reconnectMs(failures++), undefined, { signal: stopping.signal }).catch(() => {})
      }
    }
    await Promise.all(held)
  }

  /** Asks for as many as can be held, and looks after each from the moment that it arrives. */
  async function fetchUntilStopped(topic: string, held: Set<Promise<void>>, onProgress: () => void): Promise<void> {
    // Also after a failure: the stream, or the durable, may be gone with a server that lost its disk.
    const { stream, name, ackWaitMs } = await topology.ensureConsumer(consumer, topic)
    const durable = await jetstream.consumers.get(stream, name)
    while (!stopping.signal.aborted) {
      // Only what can begin soon is fetched: what waits here cannot be given to another process.
      while (held.size >= concurrency) await Promise.race(held)
      const messages = await durable.fetch({ max_messages: concurrency - held.size, expires: brokerLimits.fetchMs })
      fetches.add(messages)
      if (stopping.signal.aborted) void messages.close()
      try {
        for await (const message of messages) {
          onProgress()
          const handled = lookAfter(message, ackWaitMs).finally(() => held.delete(handled))
          held.add(handled)
        }
      } finally {
        fetches.delete(messages)
      }
    }
  }

  async function lookAfter(message: NatsMessage, ackWaitMs: number): Promise<void> {
    const heartbeat = setInterval(() => respond(() => message.working()), ackWaitMs / 3)
    try {
      await slots.take()
      try {
        if (stopping.signal.aborted) respond(() => message.nak())
        else await handOver(message)
      } finally {
        slots.give()
      }
    } finally {
      clearInterval(heartbeat)
    }
  }

  async function handOver(message: NatsMessage): Promise<void> {
    try {
      const answer = await receive(incomingOf(message, namespace))
      if (answer.kind === 'done') respond(() => message.ack())
      else respond(() => message.nak(waitOf(answer.delayMs)))
    } catch (error) {
      onError(error)
      respond(() => message.nak(brokerLimits.thrownDelayMs))
    }
  }

  /** An answer lost with the connection is harmless: the server redelivers after `ack_wait`. */
  function respond(send: () => void): void {
    try {
      send()
    } catch (error) {
      onError(error)
    }
  }

  return {
    async stop() {
      stopping.abort()
      for (const messages of fetches) void messages.close()
      await Promise.all(loops)
    },
  }
}

function waitOf(delayMs: number): number {
  return Math.min(Math.max(1, Math.ceil(delayMs)), brokerLimits.laterMaxMs)
}
