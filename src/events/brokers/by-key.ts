import { brokerLimits } from '../../ledger/core/limits.ts'
import type { OutgoingMessage, Published } from '../outbox/port.ts'

const behind: Published = { kind: 'unavailable', reason: 'An earlier message of the same key was not confirmed.' }

/** Where a key stands within one call. */
interface Lane {
  /** The last message of the key that was given to the broker, or will be. */
  readonly message: OutgoingMessage
  /** Settles with whether the messages of the current run may start; null when nothing came before it. */
  readonly gate: Promise<boolean> | null
  /** What is answered for that message: confirmed only if everything before it in the key was. */
  readonly answer: Promise<Published>
}

/**
 * Publishes a batch in its order and keeps the order within every key whatever fails: after the first message that was
 * not confirmed, the rest of its key is left for the next call. Keys do not wait for each other.
 *
 * Waiting for one confirmation after the other would be many times slower, so a key's messages to one topic go out
 * together: a topic without a queue refuses them all. Before a message to another topic, and around a large one, the key
 * waits, because the broker may refuse one of them and not the other. If an overloaded broker rejects one in the middle,
 * it has taken those behind it, which are published again after it: an ordered inbox sorts them.
 */
export async function publishByKey(
  messages: readonly OutgoingMessage[],
  publishOne: (message: OutgoingMessage) => Promise<Published>,
): Promise<readonly Published[]> {
  const lanes = new Map<string, Lane>()
  const answers = messages.map((message) => {
    if (message.key === null) return publishOne(message)
    const lane = nextLane(lanes.get(message.key), message, publishOne)
    lanes.set(message.key, lane)
    return lane.answer
  })
  return await Promise.all(answers)
}

function nextLane(
  before: Lane | undefined,
  message: OutgoingMessage,
  publishOne: (message: OutgoingMessage) => Promise<Published>,
): Lane {
  if (before === undefined) return { message, gate: null, answer: publishOne(message) }
  const gate = shareFate(before.message, message) ? before.gate : before.answer.then(isConfirmed)
  const own = gate === null ? publishOne(message) : gate.then((open) => (open ? publishOne(message) : behind))
  return { message, gate, answer: unlessBehind(before.answer, own) }
}

async function unlessBehind(before: Promise<Published>, own: Promise<Published>): Promise<Published> {
  const [earlier, answer] = await Promise.all([before, own])
  return isConfirmed(earlier) ? answer : behind
}

/** Would whatever makes the broker refuse one of them make it refuse the other? */
function shareFate(one: OutgoingMessage, other: OutgoingMessage): boolean {
  return one.topic === other.topic && isSmall(one) && isSmall(other)
}

/** Counted in characters, and headers in full: it only has to be far below what any server is set to take. */
function isSmall({ body, headers }: OutgoingMessage): boolean {
  let characters = body.length
  for (const [name, value] of Object.entries(headers)) characters += name.length + value.length
  return characters <= brokerLimits.smallCharacters
}

function isConfirmed({ kind }: Published): boolean {
  return kind === 'confirmed'
}
