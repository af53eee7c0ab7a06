import { defaults } from '../../ledger/core/limits.ts'
import type { Parts } from './parts.ts'
import type { Acknowledgement, IncomingMessage, SubscribeOptions, Subscriber, Subscription } from './port.ts'
import type { Receipt } from './receipt.ts'
import { acknowledgementOf } from './receipt.ts'

export interface ConsumeOptions extends Pick<SubscribeOptions, 'topics'> {
  /** How many messages may be under way at once. @default 8 */
  readonly concurrency?: number
}

/** Subscribes, and acknowledges every message to the broker. */
export async function consume(
  parts: Parts,
  subscriber: Subscriber,
  { topics, concurrency = defaults.inboxConcurrency }: ConsumeOptions,
  take: (message: IncomingMessage) => Promise<Receipt>,
): Promise<Subscription> {
  const { consumer, settings } = parts
  const { redeliveryHorizonMs, name } = subscriber
  if (settings.windowMs < redeliveryHorizonMs) {
    const { windowMs } = settings
    const warning = { what: 'window_too_short', windowMs, redeliveryHorizonMs, subscriber: name } as const
    parts.emit({ kind: 'warning', consumer, warning })
  }
  await parts.ready()
  return await subscriber.subscribe(
    { consumer, topics, concurrency },
    async (message): Promise<Acknowledgement> => acknowledgementOf(await take(message)),
  )
}
