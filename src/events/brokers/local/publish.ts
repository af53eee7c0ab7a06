import type { OutgoingMessage, Published } from '../../outbox/port.ts'
import { reasonOf } from '../options.ts'
import type { Queues } from './queues.ts'

const confirmed: Published = { kind: 'confirmed' }

/** Durable rows for every consumer group of the topic, in one transaction, or an answer that says why not. */
export async function publish(
  queues: Queues,
  messages: readonly OutgoingMessage[],
  call: { readonly timeoutMs: number },
): Promise<readonly Published[]> {
  try {
    const bound = await queues.bound([...new Set(messages.map(({ topic }) => topic))])
    const answers = answersFor(messages, bound)
    await queues.put(
      messages.filter((_, index) => answers[index] === confirmed),
      call,
    )
    return answers
  } catch (error) {
    return messages.map(() => ({ kind: 'unavailable', reason: reasonOf(error) }))
  }
}

function answersFor(messages: readonly OutgoingMessage[], bound: ReadonlySet<string>): readonly Published[] {
  const stuck = new Set<string>()
  return messages.map((message) => {
    const { key } = message
    if (key !== null && stuck.has(key))
      return { kind: 'unavailable', reason: 'It waits for an earlier one of its key.' }
    const problem = problemOf(message, bound)
    if (problem === null) return confirmed
    if (key !== null) stuck.add(key)
    return { kind: 'refused', reason: problem }
  })
}

function problemOf({ id, topic, key, body, headers }: OutgoingMessage, bound: ReadonlySet<string>): string | null {
  if (!bound.has(topic)) return `No consumer subscribes to ${topic}.`
  const texts = [id, topic, key ?? '', body, ...Object.entries(headers).flat()]
  // PostgreSQL cannot keep them, and one such message must not hold up its whole batch.
  if (texts.some((text) => text.includes('\0') || !text.isWellFormed())) return 'It holds characters that no text may.'
  return null
}
