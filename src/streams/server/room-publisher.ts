import type { OutgoingMessage, Published, Publisher } from '../../events/outbox/port.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { checkOptions } from '../../ledger/core/option-names.ts'
import type { StreamRegion } from './region.ts'

export interface RoomPublisherOptions {
  /** Any process of the region that takes the messages. */
  readonly region: Pick<StreamRegion, 'publish'>
  /** The room that a message belongs in; null for none. @default what follows `room.` in its topic */
  room?(message: OutgoingMessage): string | null
  /** Gets the messages that belong in no room: the adapter of a broker. @default they are refused */
  readonly otherwise?: Publisher
}

const publisherOptions = { region: true, room: true, otherwise: true } satisfies Record<
  keyof RoomPublisherOptions,
  true
>

const TOPIC = 'room.'
/** Of the time of a call: a room that does not answer must not take the answers of the others with it. */
const SHARE = 0.8

/**
 * Publishes in rooms what an outbox committed: a row and the message about it, both or neither. The outbox's id is the
 * message's id, so that a relay which repeats a message after a crash changes nothing.
 *
 * @example
 * ```ts
 * import type { Ledger } from 'onceonly'
 * import { createOutbox, createRelay } from 'onceonly/outbox'
 * import { createRoomPublisher, type StreamRegion } from 'onceonly/stream/server'
 *
 * export function announce(once: Ledger<unknown>, region: StreamRegion) {
 *   const relay = createRelay({ ledger: once, publisher: createRoomPublisher({ region }) })
 *   // In a transaction: outbox.add(tx, { id: 'order-42', topic: 'room.lobby', body: { text: 'Order 42 was paid.' } })
 *   return { relay, outbox: createOutbox({ ledger: once }) }
 * }
 * ```
 */
export function createRoomPublisher(options: RoomPublisherOptions): Publisher {
  checkOptions('createRoomPublisher', options, publisherOptions)
  const { region, room = roomOf, otherwise } = options
  if (typeof region?.publish !== 'function') {
    const text = 'createRoomPublisher needs a `region`: pass createStreamRegion({ … }).'
    throw new OnceError('bad_option', text, { details: { option: 'region' } })
  }

  async function say(message: OutgoingMessage, name: string, timeoutMs: number): Promise<Published> {
    try {
      await region.publish(name, JSON.parse(message.body), { id: message.id, from: 'outbox', timeoutMs })
      return { kind: 'confirmed' }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return { kind: error instanceof OnceError && !error.retryable ? 'refused' : 'unavailable', reason }
    }
  }

  async function pass(messages: readonly OutgoingMessage[], call: { readonly timeoutMs: number }) {
    if (messages.length === 0) return []
    if (otherwise !== undefined) return otherwise.publish(messages, call)
    return messages.map(
      ({ topic }): Published => ({ kind: 'refused', reason: `\`${topic}\` is the topic of no room.` }),
    )
  }

  return {
    name: 'rooms',
    async publish(messages, call) {
      const timeoutMs = Math.max(1, Math.floor(SHARE * call.timeoutMs))
      const names = messages.map((message) => room(message))
      // Begun in their order, a room stores them in their order.
      const said = Promise.all(messages.map((message, index) => sayIn(message, names[index] ?? null, timeoutMs)))
      const passed = await pass(
        messages.filter((_, index) => names[index] === null),
        call,
      )
      const answers = [...(await said)]
      let next = 0
      const whole = answers.map(
        (answer): Published => answer ?? passed[next++] ?? { kind: 'unavailable', reason: 'No answer.' },
      )
      return inOrder(messages, whole)
    },
  }

  async function sayIn(message: OutgoingMessage, name: string | null, timeoutMs: number): Promise<Published | null> {
    return name === null ? null : say(message, name, timeoutMs)
  }
}

function roomOf({ topic }: OutgoingMessage): string | null {
  return topic.startsWith(TOPIC) ? topic.slice(TOPIC.length) : null
}

/** A key's later message does not count before an earlier one of it does. */
function inOrder(messages: readonly OutgoingMessage[], answers: readonly Published[]): readonly Published[] {
  const stuck = new Set<string>()
  return answers.map((answer, index) => {
    const key = messages[index]?.key ?? null
    if (key === null) return answer
    if (stuck.has(key)) return { kind: 'unavailable', reason: 'An earlier message of the key was not published.' }
    if (answer.kind !== 'confirmed') stuck.add(key)
    return answer
  })
}
