import { type Entry, identityText, type LogPlace, type MessageIdentity, type Position } from 'onceonly/stream'
import type { Gap, Message } from './message.ts'
import { type Said, saidOf } from './said.ts'
import { type Arranged, arranged, type Thread } from './threads.ts'
import type { Unsettled } from './unsettled.ts'

export type Author = Pick<MessageIdentity, 'client' | 'epoch'>

export interface Conversation {
  /** This participant wrote it; no region has it yet. */
  sent(identity: MessageIdentity, said: Said, replyTo: MessageIdentity | null): void
  accepted(identity: MessageIdentity): void
  shown(entry: Entry): void
  /** A message that was shown stands in a second log, too. */
  copied(place: LogPlace): void
  ordered(identity: MessageIdentity, place: number): void
  /** The room continues from this position: what was not shown up to there is no longer kept. */
  reset(position: Position): void
  /**
   * What is pending under an identity that was given up continues under another one, numbered again from 1; but for those
   * whose fate is not known.
   */
  renamed(from: Author, to: Author, doubtful?: readonly Said[]): void
  /** The room does not have the message that a pending one replies to: that one is not sent. */
  refused(replyTo: MessageIdentity): void
  /** From before a reload; a new message, because its number means nothing any more. */
  restore(unsettled: Unsettled): void
  /** Those of its author that are not sent by themselves. */
  unsettled(): readonly Unsettled[]
  forget(message: Message): void
  /** In the order in which they are read: what is final first, then as it came; every reply under its parent. */
  threads(): readonly Thread[]
  arranged(): Arranged
  message(identity: MessageIdentity): Message | null
  find(id: string): Message | null
  readonly size: number
}

/** What a window holds: more than a room keeps, so that only one that stays open for days lets go of its oldest. */
const MESSAGES_MOST = 10_000
/** Dropped at a time, so that a full window does not rearrange itself for each message. */
const DROPPED_MESSAGES = 500
/** Places that came before their message, or whose message is no longer kept. */
const PLACES_MOST = 10_000

/** What one person has before them. It only arranges: what is true is decided by the regions. */
export function createConversation(messagesMost = MESSAGES_MOST): Conversation {
  const messages = new Map<string, Message>()
  // A place in the final order may come before the message itself.
  const places = new Map<string, number>()
  /** How far each log was shown. */
  const heads = new Map<string, number>()
  let gaps: readonly Gap[] = []
  /** Of the last gap: up to here messages may be missing. */
  let missingUpTo: Position = {}
  let arrivals = 0
  let shows = 0
  let drawn: Arranged | null = null

  function put(message: Message): void {
    messages.set(message.id, message)
    drawn = null
  }

  function add(identity: MessageIdentity, said: Said, replyTo: MessageIdentity | null): Message {
    const id = identityText(identity)
    const known = messages.get(id)
    if (known !== undefined) return known
    const final = places.get(id) ?? null
    places.delete(id)
    const message: Message = {
      ...said,
      id,
      identity: { client: identity.client, epoch: identity.epoch, cseq: identity.cseq },
      replyTo: replyTo === null ? null : identityText(replyTo),
      state: final === null ? 'pending' : 'final',
      final,
      entry: null,
      arrival: arrivals++,
      shown: null,
    }
    put(message)
    return message
  }

  /** An entry that comes although it was counted as missing is one less. */
  function reach({ log, n }: LogPlace): void {
    heads.set(log, Math.max(heads.get(log) ?? 0, n))
    const last = gaps.at(-1)
    if (last === undefined || n > (missingUpTo[log] ?? 0)) return
    gaps = [...gaps.slice(0, -1), { ...last, messages: last.messages - 1 }].filter(isGap)
    drawn = null
  }

  function dropOldest(): void {
    let dropped = 0
    for (const { id, state } of messages.values()) {
      if (dropped >= DROPPED_MESSAGES) break
      if (state !== 'accepted' && state !== 'final') continue
      messages.delete(id)
      dropped += 1
    }
    const before = gaps.find(({ kind }) => kind === 'dropped')?.messages ?? 0
    gaps = [{ kind: 'dropped', messages: before + dropped, after: 0 }, ...gaps.filter(({ kind }) => kind === 'missing')]
  }

  return {
    sent: (identity, said, replyTo) => void add(identity, said, replyTo),
    accepted(identity) {
      const message = messages.get(identityText(identity))
      if (message?.state === 'pending') put({ ...message, state: 'accepted' })
    },
    shown(entry) {
      reach(entry)
      const message = add(entry, saidOf(entry.body), entry.replyTo)
      if (message.entry !== null) return
      const state = message.state === 'final' ? 'final' : 'accepted'
      put({ ...message, entry, state, shown: shows++ })
      if (messages.size >= messagesMost + DROPPED_MESSAGES) dropOldest()
    },
    copied: reach,
    ordered(identity, place) {
      const id = identityText(identity)
      const message = messages.get(id)
      if (message !== undefined) return put({ ...message, final: place, state: 'final' })
      places.set(id, place)
      const [oldest] = places.keys()
      if (places.size > PLACES_MOST && oldest !== undefined) places.delete(oldest)
    },
    reset(position) {
      const missing = Object.entries(position).map(([log, n]) => Math.max(0, n - (heads.get(log) ?? 0)))
      const kind = heads.size === 0 ? 'before' : 'missing'
      const gap: Gap = { kind, messages: missing.reduce((sum, each) => sum + each, 0), after: shows }
      gaps = [...gaps, gap].filter(isGap)
      missingUpTo = position
      for (const [log, n] of Object.entries(position)) heads.set(log, Math.max(heads.get(log) ?? 0, n))
      drawn = null
    },
    renamed(from, to, doubtful = []) {
      const pending = [...messages.values()].filter(
        ({ state, identity }) =>
          state === 'pending' && identity.client === from.client && identity.epoch === from.epoch,
      )
      const left = new Set<Message>()
      for (const { name, text } of doubtful) {
        const found = pending.find((each) => !left.has(each) && each.name === name && each.text === text)
        if (found !== undefined) left.add(found)
      }
      const carried = pending.filter((message) => !left.has(message))
      for (const message of left) put({ ...message, state: 'doubtful' })
      for (const { id } of carried) messages.delete(id)
      const renewed = new Map(carried.map(({ id }, at) => [id, at + 1]))
      for (const [at, { identity, replyTo, name, text, quote }] of carried.entries()) {
        const number = replyTo === null ? undefined : renewed.get(replyTo)
        const known = replyTo === null ? null : (messages.get(replyTo)?.identity ?? null)
        const parent = number === undefined ? known : { ...to, cseq: number }
        add({ ...identity, ...to, cseq: at + 1 }, { name, text, quote }, parent)
      }
      drawn = null
    },
    refused(replyTo) {
      const target = identityText(replyTo)
      const message = [...messages.values()].find((each) => each.state === 'pending' && each.replyTo === target)
      if (message !== undefined) put({ ...message, state: 'refused' })
    },
    restore({ state, said }) {
      put({ ...add({ client: state, epoch: 1, cseq: arrivals + 1 }, said, null), state })
    },
    unsettled: () =>
      [...messages.values()].flatMap(({ state, name, text, quote }) =>
        state === 'doubtful' || state === 'refused' ? [{ state, said: { name, text, quote } }] : [],
      ),
    forget({ id }) {
      messages.delete(id)
      drawn = null
    },
    threads: () => now().threads,
    arranged: now,
    message: (identity) => messages.get(identityText(identity)) ?? null,
    find: (id) => messages.get(id) ?? null,
    get size() {
      return messages.size
    },
  }

  /** Arranged when it is looked at, not with every change: a thousand of these may come between two frames. */
  function now(): Arranged {
    drawn ??= arranged(messages, gaps)
    return drawn
  }
}

function isGap({ messages }: Gap): boolean {
  return messages > 0
}
