import { brokerLimits, DAY, HOUR, MINUTE, SECOND } from '../../../ledger/core/limits.ts'
import type { IncomingMessage } from '../../inbox/port.ts'
import type { Published } from '../../outbox/port.ts'
import { tooLate } from '../by-key.ts'
import type { Confirms } from './confirms.ts'
import type { RabbitChannel, RabbitQueue } from './driver.ts'
import { detourOf } from './message.ts'

/**
 * A message for later waits in a queue beside the consumer's, until its time to live is over and it is handed back as a
 * dead letter. A queue lets go only of its first message, so that a long wait would hold up a short one behind it: the
 * waits of one queue differ by four times at most. Between messages of one wait the time is exact.
 */
const stepsMs = [
  250,
  1 * SECOND,
  4 * SECOND,
  16 * SECOND,
  1 * MINUTE,
  4 * MINUTE,
  16 * MINUTE,
  1 * HOUR,
  4 * HOUR,
  16 * HOUR,
  2 * DAY,
  8 * DAY,
  brokerLimits.laterMaxMs,
] as const

/** Where a wait of this length is spent. */
function waitingQueue(queue: string, delayMs: number): RabbitQueue {
  const stepMs = stepsMs.find((ms) => delayMs <= ms) ?? brokerLimits.laterMaxMs
  return {
    queue: `${queue}.later.${stepMs}`,
    durable: true,
    arguments: {
      'x-queue-type': 'quorum',
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': queue,
      // By default a server forwards dead letters without waiting for a confirmation, and may lose them.
      'x-dead-letter-strategy': 'at-least-once',
      'x-overflow': 'reject-publish',
    },
  }
}

/**
 * Gives a copy of the message its place in the queue where it waits. The caller acknowledges the message itself only
 * afterwards: a crash in between makes two copies of one id, and the inbox knows what to do with those.
 */
export async function putOff(
  confirms: Confirms,
  declared: Declared,
  details: { readonly queue: string; readonly message: IncomingMessage; readonly delayMs: number },
  late: Promise<void>,
): Promise<Published> {
  const { queue, message, delayMs } = details
  const waitMs = Math.min(Math.max(1, Math.ceil(delayMs)), brokerLimits.laterMaxMs)
  const waiting = waitingQueue(queue, waitMs)
  const envelope = detourOf(message, waiting.queue, waitMs)
  const send = () => Promise.race([confirms.send(envelope, message.body), late.then(() => tooLate)])
  try {
    await declared.ensure(waiting)
    const first = await send()
    if (first.kind !== 'refused') return first
    // The queue was removed: declare it again, once.
    declared.forget(waiting.queue)
    await declared.ensure(waiting)
    return await send()
  } catch (error) {
    return { kind: 'unavailable', reason: String(error) }
  }
}

/** Queues that were declared on a channel of their own, each once. */
export interface Declared {
  ensure(queue: RabbitQueue): Promise<void>
  forget(queue: string): void
}

export function createDeclared(
  withChannel: (work: (channel: RabbitChannel) => Promise<void>) => Promise<void>,
): Declared {
  const known = new Map<string, Promise<void>>()
  return {
    async ensure(queue) {
      const declaring = known.get(queue.queue) ?? withChannel((channel) => channel.queueDeclare(queue).then(() => {}))
      known.set(queue.queue, declaring)
      try {
        await declaring
      } catch (error) {
        known.delete(queue.queue)
        throw error
      }
    },
    forget: (queue) => void known.delete(queue),
  }
}
