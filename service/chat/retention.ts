import { DAY } from 'onceonly'
import type { Config } from '../config.ts'

/** How long the chat keeps what. */
export interface ChatRetention {
  /** Messages, of each room; sooner where a room has more than `messages`. */
  readonly messagesMs: number
  readonly messages: number
  /** Final places, clients, their owners, and rooms without visitors. */
  readonly namesMs: number
  readonly sweepEveryMs: number
}

/**
 * Everything that identifies messages outlives the messages: a client that comes back late is recognised, and a region that was
 * down for long assigns no place twice.
 */
const LONGER_MS = 7 * DAY

export function chatRetention(
  config: Pick<Config, 'retainChatDays' | 'retainChatMessages' | 'sweepEveryMs'>,
): ChatRetention {
  const messagesMs = config.retainChatDays * DAY
  return {
    messagesMs,
    messages: config.retainChatMessages,
    namesMs: messagesMs + LONGER_MS,
    sweepEveryMs: config.sweepEveryMs,
  }
}
