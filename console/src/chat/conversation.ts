import { coversPlace, type Entry, identityText, type MessageIdentity } from 'onceonly/stream'
import { type Said, saidOf } from './said.ts'

/** `pending`: only its author has it. `accepted`: a region has it on disk. `final`: its place is the same for everybody. */
export type MessageState = 'pending' | 'accepted' | 'final'

export interface Message extends Said {
  readonly id: string
  readonly identity: MessageIdentity
  readonly replyTo: string | null
  state: MessageState
  /** Its place in the final order; null until it has one. */
  final: number | null
  /** Its entry in the log, as soon as it was shown. */
  entry: Entry | null
  /** The order in which it came to this page. */
  readonly arrival: number
}

export interface Thread {
  readonly message: Message
  readonly replies: readonly Thread[]
  /** Siblings that were written without knowing of each other. */
  readonly concurrentWith: readonly Message[]
}

export interface Conversation {
  /** This person wrote it; nobody else has it yet. */
  sent(identity: MessageIdentity, said: Said, replyTo: MessageIdentity | null): void
  accepted(identity: MessageIdentity): void
  shown(entry: Entry): void
  ordered(identity: MessageIdentity, place: number): void
  /** What is pending under an identity that was given up goes on under another one, numbered anew from 1. */
  renamed(from: Author, to: Author): void
  /** In the order in which they are read: what is final first, then as it came; every reply under its parent. */
  threads(): readonly Thread[]
  message(identity: MessageIdentity): Message | null
  readonly size: number
}

export type Author = Pick<MessageIdentity, 'client' | 'epoch'>

/** What one person has before them. It only arranges: what is true is decided by the regions. */
export function createConversation(): Conversation {
  const messages = new Map<string, Message>()
  // A place in the final order may be told before the message itself.
  const places = new Map<string, number>()
  let arrivals = 0
  return {
    sent: (identity, said, replyTo) => void add(identity, said, replyTo),
    accepted(identity) {
      const message = messages.get(identityText(identity))
      if (message?.state === 'pending') message.state = 'accepted'
    },
    shown(entry) {
      const message = add(entry, saidOf(entry.body), entry.replyTo)
      message.entry ??= entry
      if (message.state === 'pending') message.state = 'accepted'
    },
    ordered(identity, place) {
      const id = identityText(identity)
      places.set(id, place)
      const message = messages.get(id)
      if (message !== undefined) finish(message, place)
    },
    renamed(from, to) {
      const pending = [...messages.values()].filter(
        ({ state, identity }) =>
          state === 'pending' && identity.client === from.client && identity.epoch === from.epoch,
      )
      for (const { id } of pending) messages.delete(id)
      for (const [at, { identity, replyTo, name, text }] of pending.entries()) {
        const parent = replyTo === null ? null : (messages.get(replyTo)?.identity ?? null)
        add({ ...identity, ...to, cseq: at + 1 }, { name, text }, parent)
      }
    },
    threads: () => arranged(messages),
    message: (identity) => messages.get(identityText(identity)) ?? null,
    get size() {
      return messages.size
    },
  }

  function add(identity: MessageIdentity, said: Said, replyTo: MessageIdentity | null): Message {
    const id = identityText(identity)
    const known = messages.get(id)
    if (known !== undefined) return known
    const message: Message = {
      ...said,
      id,
      identity: { client: identity.client, epoch: identity.epoch, cseq: identity.cseq },
      replyTo: replyTo === null ? null : identityText(replyTo),
      state: 'pending',
      final: null,
      entry: null,
      arrival: arrivals++,
    }
    messages.set(id, message)
    const place = places.get(id)
    if (place !== undefined) finish(message, place)
    return message
  }
}

function finish(message: Message, place: number): void {
  message.final = place
  message.state = 'final'
}

function arranged(messages: ReadonlyMap<string, Message>): readonly Thread[] {
  const replies = Map.groupBy(messages.values(), ({ replyTo }) =>
    // A parent that is no longer kept leaves its replies at the top, rather than nowhere.
    replyTo !== null && messages.has(replyTo) ? replyTo : null,
  )
  const threadsUnder = (parent: string | null): readonly Thread[] => {
    const siblings = (replies.get(parent) ?? []).toSorted(byReading)
    return siblings.map((message) => ({
      message,
      replies: threadsUnder(message.id),
      concurrentWith: parent === null ? [] : siblings.filter((other) => areConcurrent(message, other)),
    }))
  }
  return threadsUnder(null)
}

function byReading(a: Message, b: Message): number {
  if (a.final !== null && b.final !== null) return a.final - b.final
  if (a.final !== null) return -1
  if (b.final !== null) return 1
  return a.arrival - b.arrival
}

function areConcurrent({ entry: a }: Message, { entry: b }: Message): boolean {
  if (a === null || b === null || a === b) return false
  if (a.client === b.client && a.epoch === b.epoch) return false
  return !coversPlace(a.seen, b) && !coversPlace(b.seen, a)
}
