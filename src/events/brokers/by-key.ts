import { brokerLimits } from '../../ledger/core/limits.ts'
import type { OutgoingMessage, Published } from '../outbox/port.ts'

const behind: Published = { kind: 'unavailable', reason: 'An earlier message of the same key was not confirmed.' }
export const tooLate: Published = { kind: 'unavailable', reason: 'The broker did not confirm in time.' }

type Send = (message: OutgoingMessage) => Promise<Published>

/** Where a key stands within one call. */
interface Lane {
  /** The last message of the key so far, sent or not. */
  last: OutgoingMessage
  /** Messages of the key that were sent and are not answered yet. */
  underWay: number
  /** Whether every message that was answered so far was confirmed. */
  isWhole: boolean
  /** Places of the messages that wait for those; null as long as there is none. */
  waiting: number[] | null
}

/**
 * Publishes a batch in its order and keeps the order within every key whatever fails: after the first message that was
 * not confirmed, the rest of its key is left for the next call. Keys do not wait for each other. What is not answered
 * when `late` settles is answered then, and nothing more is sent.
 *
 * Waiting for one confirmation after the other would be many times slower, so a key's messages to one topic go out
 * together: a topic without a queue refuses them all. Before a message to another topic, and around a large one, the key
 * waits, because the broker may refuse one of them and not the other. If an overloaded broker rejects one in the middle,
 * it has taken those behind it, which are published again after it: an ordered inbox sorts them.
 */
export function publishByKey(
  messages: readonly OutgoingMessage[],
  send: Send,
  late: Promise<void>,
): Promise<readonly Published[]> {
  return new Promise((resolve, reject) => {
    // Counted and written into one list: promises for each message were a good part of a relay's time.
    const answers = messages.map((): Published => tooLate)
    const lanes = new Map<string, Lane>()
    let open = messages.length
    let isOver = false

    function finish(): void {
      if (isOver) return
      isOver = true
      resolve(inOrder(messages, answers))
    }

    function start(place: number, message: OutgoingMessage, lane: Lane | null): void {
      if (lane !== null) lane.underWay += 1
      send(message).then((answer) => answered(place, answer, lane), reject)
    }

    function answered(place: number, answer: Published, lane: Lane | null): void {
      if (isOver) return
      answers[place] = answer
      open -= 1
      if (lane !== null) {
        lane.underWay -= 1
        if (answer.kind !== 'confirmed') lane.isWhole = false
        if (lane.underWay === 0 && lane.waiting !== null) goOn(lane, lane.waiting)
      }
      if (open === 0) finish()
    }

    /** Sends what shares the fate of the first that waits; or nothing, once one of the key was not confirmed. */
    function goOn(lane: Lane, waiting: number[]): void {
      lane.waiting = null
      if (!lane.isWhole) {
        for (const place of waiting) answers[place] = behind
        open -= waiting.length
        return
      }
      for (const [index, place] of waiting.entries()) {
        const message = messages[place]
        const before = messages[waiting[index - 1] ?? -1]
        if (message === undefined) continue
        if (before !== undefined && !shareFate(before, message)) {
          lane.waiting = waiting.slice(index)
          return
        }
        start(place, message, lane)
      }
    }

    for (const [place, message] of messages.entries()) {
      if (message.key === null) {
        start(place, message, null)
        continue
      }
      const lane = lanes.get(message.key)
      if (lane === undefined) {
        const first: Lane = { last: message, underWay: 0, isWhole: true, waiting: null }
        lanes.set(message.key, first)
        start(place, message, first)
        continue
      }
      if (lane.waiting !== null) lane.waiting.push(place)
      else if (shareFate(lane.last, message)) start(place, message, lane)
      else lane.waiting = [place]
      lane.last = message
    }
    if (open === 0) finish()
    else void late.then(finish)
  })
}

/** A message is confirmed only if everything before it in its key was. */
function inOrder(messages: readonly OutgoingMessage[], answers: readonly Published[]): readonly Published[] {
  if (answers.every(isConfirmed)) return answers
  const stuck = new Set<string>()
  return messages.map(({ key }, place) => {
    const answer = answers[place] ?? tooLate
    if (key === null) return answer
    if (stuck.has(key)) return behind
    if (!isConfirmed(answer)) stuck.add(key)
    return answer
  })
}

/** Would whatever makes the broker refuse one of them make it refuse the other? */
function shareFate(one: OutgoingMessage, other: OutgoingMessage): boolean {
  return one.topic === other.topic && isSmall(one) && isSmall(other)
}

/** Counted in characters, and headers in full: it only has to be far below what any server is set to take. */
function isSmall({ body, headers }: OutgoingMessage): boolean {
  let characters = body.length
  for (const name of Object.keys(headers)) characters += name.length + (headers[name]?.length ?? 0)
  return characters <= brokerLimits.smallCharacters
}

function isConfirmed({ kind }: Published): boolean {
  return kind === 'confirmed'
}
