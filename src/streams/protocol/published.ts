import type { MessageIdentity } from './protocol.ts'

/**
 * What the names of servers begin with, where clients have theirs: a client that says so in its hello is refused. Behind
 * it stand the name that the server gave itself and a digest of the message's id.
 */
const PREFIX = 'pub~'

/** Leaves room in a name for the prefix and a digest. */
export const PUBLISHER_CHARS_MOST = 32

/** Each of its messages has a sender of its own, and is the only one of it. */
export const PUBLISHED = { epoch: 1, cseq: 1 } as const

export function isPublisherName(client: string): boolean {
  return client.startsWith(PREFIX)
}

export function publisherName(from: string, digest: string): string {
  return `${PREFIX}${from}~${digest}`
}

/**
 * The publisher of a message: the name in `from`, or null where a client sent it.
 *
 * @example
 * ```ts
 * import { publisherOf } from 'onceonly/stream'
 *
 * publisherOf({ client: 'ada' }) // null
 * ```
 */
export function publisherOf({ client }: Pick<MessageIdentity, 'client'>): string | null {
  if (!isPublisherName(client)) return null
  return client.slice(PREFIX.length, client.lastIndexOf('~'))
}
