import { Ranges } from '../parts/ranges.ts'
import type { MessageIdentity } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import { isPublisherName } from '../protocol/published.ts'
import type { SessionBounds } from '../session-limits.ts'

/** Holes in the numbers of one sender: each reset of the room may leave one. Past it the oldest counts as received. */
const HOLES_MOST = 1_024

/**
 * Which messages have come. A region marks the second copies that it knows of; after a move to another region a copy may
 * be known only here. Bounded: the sender that was heard longest ago is forgotten first, and so is the oldest message of
 * a server, which has a sender's name of its own for each.
 */
export class Received {
  /** By client and epoch; the one that was heard longest ago comes first. */
  readonly #senders = new Map<string, Ranges>()
  readonly #published = new Set<string>()
  readonly #mostSenders: number
  readonly #mostPublished: number
  #forgot = false

  constructor({ knownSenders, knownPublished }: Pick<SessionBounds, 'knownSenders' | 'knownPublished'>) {
    this.#mostSenders = knownSenders
    this.#mostPublished = knownPublished
  }

  /** Something that has come is not known any more. */
  get forgot(): boolean {
    return this.#forgot
  }

  has(identity: MessageIdentity): boolean {
    if (isPublisherName(identity.client)) return this.#published.has(identityText(identity))
    return this.#senders.get(senderText(identity))?.has(identity.cseq - 1) === true
  }

  /** True for the first copy, which is noted. */
  first(identity: MessageIdentity): boolean {
    return isPublisherName(identity.client) ? this.#firstPublished(identity) : this.#firstSent(identity)
  }

  #firstPublished(identity: MessageIdentity): boolean {
    const text = identityText(identity)
    if (this.#published.has(text)) return false
    this.#published.add(text)
    if (this.#published.size > this.#mostPublished) this.#forgetOldest(this.#published)
    return true
  }

  #firstSent(identity: MessageIdentity): boolean {
    const sender = senderText(identity)
    const numbers = this.#senders.get(sender) ?? new Ranges()
    this.#senders.delete(sender)
    this.#senders.set(sender, numbers)
    if (this.#senders.size > this.#mostSenders) this.#forgetOldest(this.#senders)
    const [[, oldest] = [0, 0]] = numbers.rangeCount >= HOLES_MOST ? numbers.above : []
    if (oldest > 0) numbers.addBelow(oldest)
    return numbers.add(identity.cseq - 1)
  }

  #forgetOldest(of: Map<string, unknown> | Set<string>): void {
    this.#forgot = true
    for (const oldest of of.keys()) {
      of.delete(oldest)
      return
    }
  }
}

function senderText({ client, epoch }: MessageIdentity): string {
  return `${client}/${epoch}`
}
