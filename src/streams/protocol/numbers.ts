import type { LogPlace, ServerFrame } from './protocol.ts'
import { isPublisherName } from './published.ts'

/**
 * The compact form is that of what every client of a room is sent: entries and their final places. All else travels once,
 * and as JSON. Logs and people get small numbers with their first frame, and what is expected next takes no bytes. Both
 * ends of a session come to the same numbers, because a connection keeps the order of its frames.
 */
export interface SessionNumbers {
  /** Logs, by their numbers. */
  readonly logs: string[]
  /** How far each log has come. */
  have: Record<string, number>
  /** People, by their numbers; behind the last of them servers. */
  readonly senders: KnownSender[]
  /** How many people were named, and how many messages of servers, which have a name each. */
  named: number
  published: number
  generation: number
  /** Entries that were sent. */
  sent: number
  /** The last place of the final order that was sent. */
  ordered: number
  acceptedAtMs: number
}

/** A person who wrote under one epoch, and what is expected of them next. */
export interface KnownSender {
  readonly client: string
  readonly epoch: number
  /** Of the last message. */
  cseq: number
  /** Where it stands. */
  place: LogPlace | null
  /** The last that has its final place. */
  ordered: number
}

/** What is 0 where it is not said. */
export const flags = { copy: 1, reply: 2, written: 4, seen: 8, after: 16, numbers: 32 } as const

/** Names of logs come before the entries that need them. Places of the final order follow each other, or say where they are. */
export const compactKinds = { deliver: 0, deliverWithNames: 1, order: 2, orderFrom: 3 } as const

/** Logs of a position that are not where they are expected: a bit for each. */
export const LOGS_PER_BYTE = 8

/** A frame begins with a number that is its kind and so many times its channel: a byte for the first 32 channels. */
export const CHANNEL_STEP = 4

/** Twice the distance of two numbers below it is a safe integer. */
const FAR = 2 ** 50

/** What a distance is counted from: a number that is too large for it counts as none. */
export function near(number: number): number {
  return number < FAR ? number : 0
}

/** Past it the number of the person who was named first is given away: a busy room costs some memory, not any. */
const SENDERS_MOST = 256
/** The same for messages of servers: a few are named again, for their final place or a reply, and they push out no people. */
const PUBLISHED_MOST = 64

export function createNumbers(): SessionNumbers {
  return {
    logs: [],
    have: {},
    senders: [],
    named: 0,
    published: 0,
    generation: 0,
    sent: 0,
    ordered: 0,
    acceptedAtMs: 0,
  }
}

export function addSender(numbers: SessionNumbers, client: string, epoch: number): KnownSender {
  const known = { client, epoch, cseq: 0, place: null, ordered: 0 }
  numbers.senders[freeNumber(numbers, client)] = known
  if (isPublisherName(client)) numbers.published += 1
  else numbers.named += 1
  return known
}

/** The number of who is named next. */
export function freeNumber({ named, published }: SessionNumbers, client: string): number {
  return isPublisherName(client) ? SENDERS_MOST + (published % PUBLISHED_MOST) : named % SENDERS_MOST
}

/** Both ends note what is said in JSON, too. */
export function noteFrame(numbers: SessionNumbers, frame: ServerFrame): void {
  if (frame.kind === 'deliver') numbers.sent = frame.after + frame.entries.length
  if (frame.kind !== 'resumed') return
  const { generation, ordered, sent, position } = frame
  Object.assign(numbers, { generation, ordered, sent, have: { ...position } })
}

/** Both ends have come further by an entry. */
export function noteEntry(
  { have }: SessionNumbers,
  sender: KnownSender,
  entry: LogPlace & { readonly cseq: number },
): void {
  const { log, n, cseq } = entry
  have[log] = n
  if (cseq < sender.cseq) return
  sender.cseq = cseq
  sender.place = { log, n }
}
