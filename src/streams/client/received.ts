import type { MessageIdentity } from '../protocol/protocol.ts'
import { isPublisherName } from '../protocol/published.ts'
import type { SessionBounds } from '../session-limits.ts'

type Bounds = Pick<SessionBounds, 'knownSenders' | 'knownPublished'>

/**
 * Which messages have come. A region marks the second copies that it knows of; after a move to another region one may be
 * known only here. Every region delivers a sender's messages in their order, so that the last number says it all. Bounded:
 * the sender that was heard longest ago is forgotten first. Of servers each message has a sender, with a bound of its own.
 */
export class Received {
  /** The last number by client and epoch; the one that was heard longest ago comes first. */
  readonly #people = new Map<string, number>()
  readonly #servers = new Map<string, number>()
  readonly #bounds: Bounds
  /** Something that has come is not known any more. */
  forgot = false

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  has({ client, epoch, cseq }: MessageIdentity): boolean {
    const senders = isPublisherName(client) ? this.#servers : this.#people
    return (senders.get(`${client}/${epoch}`) ?? 0) >= cseq
  }

  /** True for the first copy, which is noted. */
  first(identity: MessageIdentity): boolean {
    if (this.has(identity)) return false
    const { client, epoch, cseq } = identity
    const [senders, most] = isPublisherName(client)
      ? [this.#servers, this.#bounds.knownPublished]
      : [this.#people, this.#bounds.knownSenders]
    const sender = `${client}/${epoch}`
    senders.delete(sender)
    senders.set(sender, cseq)
    const [oldest = ''] = senders.keys()
    if (senders.size > most) this.forgot = senders.delete(oldest)
    return true
  }
}
