/**
 * The frames of a session, with `kind` as the discriminant. A session is one client in one room. One connection carries
 * several of them, each on a channel of its own: a number that the client gives with the hello, from 0 on, and never
 * again on this connection. `codec.ts` writes and reads frames, and trusts nothing that it reads.
 */

import type { Counts } from '../parts/count.ts'

/** Grows when a frame changes its meaning; a server that does not speak a client's version says so in its close. */
export const PROTOCOL_VERSION = 1

/** The author of a message, whatever log it stands in: this, never a place, serves display, `replyTo` and deduplication. */
export interface MessageIdentity {
  readonly client: string
  /** A client that lost its numbers begins a new epoch, and never repeats a number of an old one. */
  readonly epoch: number
  /** Consecutive from 1 within the epoch. */
  readonly cseq: number
}

/** A place in one region's log of a room. */
export interface LogPlace {
  /** The name of the log: its region, a dot and the epoch of the log. A region that lost its log begins another one. */
  readonly log: string
  /** Consecutive from 1. */
  readonly n: number
}

/**
 * How far a client or region has come: a count for every log. It describes a prefix of each log, because every log is
 * delivered in its order; so a position means the same in every region.
 */
export type Position = Counts

/**
 * What the author of a message gives; a resend keeps it. It is passed on whole everywhere: a new member needs a line here
 * and one in `readContent`.
 */
export interface MessageContent {
  /** What the client had shown when it first sent this; in a stored message also what that replies to. */
  readonly seen: Position
  readonly replyTo: MessageIdentity | null
  /** Any JSON value. */
  readonly body: unknown
  /**
   * By the author's clock, where it was written without a connection: `acceptedAtMs` may be hours later then. For people,
   * as that is.
   */
  readonly writtenAtMs?: number
}

/** A message as its accepting region wrote it. */
export interface Entry extends LogPlace, MessageIdentity, MessageContent {
  /** Where the sender's previous message stands, as far as the accepting region knew: that comes first everywhere. */
  readonly after: LogPlace | null
  /** By the accepting region's clock; for people. Nothing is ordered or expired by it. */
  readonly acceptedAtMs: number
}

/** What a client is shown of an entry. A second copy of an identity only moves its log on: it has no body. */
export type Delivered =
  | ({ readonly kind: 'message' } & Entry)
  | ({ readonly kind: 'copy' } & LogPlace & MessageIdentity & { readonly seen: Position })

export type ClientFrame =
  | HelloFrame
  | ResumeFrame
  | SendFrame
  /** How many entries of this session were taken, in all; a server keeps the rest in its log. */
  | { readonly kind: 'credit'; readonly taken: number }
  /** The session is over; the connection and its other sessions stay. */
  | { readonly kind: 'leave' }
  /** Belongs to the connection, not to a session: its channel means nothing. */
  | { readonly kind: 'ping' }

export interface HelloFrame {
  readonly kind: 'hello'
  readonly version: number
  readonly room: string
  readonly client: string
  readonly epoch: number
  /** Grows with each connection; a smaller one than the last is an old connection. */
  readonly generation: number
  /** New for each process or tab: the same generation from another one is a clone. */
  readonly instance: string
}

/** Where to continue. May be sent again on the same connection: deliveries restart from the position. */
export interface ResumeFrame {
  readonly kind: 'resume'
  readonly position: Position
  /** The last number of the final order that the client has; 0 for none. */
  readonly ordered: number
  /** The first number that is not acknowledged: what is below it must be known, or nothing is accepted. */
  readonly pendingFrom: number
  /** Where the client's last acknowledged message stands: a region that has not come so far is behind, not ignorant. */
  readonly acknowledged: LogPlace | null
  /** The region of the session before this one. */
  readonly previousRegion: string | null
}

export interface SendFrame extends MessageContent {
  readonly kind: 'send'
  readonly cseq: number
}

export type ServerFrame =
  | WelcomeFrame
  | AckFrame
  | { readonly kind: 'nack'; readonly cseq: number; readonly why: NackReason }
  | DeliverFrame
  | OrderFrame
  | ResumedFrame
  | ResetFrame
  /** What the region lacks before it can accept what this client sent; empty when it has caught up. */
  | { readonly kind: 'lag'; readonly missing: Position }
  | EndedFrame
  | { readonly kind: 'pong' }

export interface DeliverFrame {
  readonly kind: 'deliver'
  readonly generation: number
  /** How many entries were sent on this connection before these. */
  readonly after: number
  readonly entries: readonly Delivered[]
}

/**
 * Places of the final order, consecutive from `from` on, for a client that has all up to `after`. The owners of the places
 * between the two are no longer stored.
 */
export interface OrderFrame {
  readonly kind: 'order'
  readonly generation: number
  readonly after: number
  readonly from: number
  readonly identities: readonly MessageIdentity[]
}

/** Always carries a position, so that a quiet or brand-new connection can resume, too. */
export interface WelcomeFrame {
  readonly kind: 'welcome'
  readonly version: number
  readonly region: string
  readonly generation: number
  /** How far the region has come in the room. */
  readonly position: Position
  /** Everything of this client and epoch below it is accepted. */
  readonly floor: number
  /** Where the one just below the floor stands: the proof for other regions that there is one. */
  readonly last: LogPlace | null
}

export interface AckFrame {
  readonly kind: 'ack'
  /** Everything below it is accepted. */
  readonly floor: number
  /** Accepted above the floor, both ends included. */
  readonly ranges: readonly (readonly [number, number])[]
  readonly results: readonly AckResult[]
}

export interface AckResult {
  readonly cseq: number
  /** Null when it was accepted so long ago that its place is not remembered. */
  readonly place: LogPlace | null
}

/**
 * `fork`: this number was taken by another body. `target-unknown`: the room has never seen the message that this one
 * replies to; nothing that follows it on this connection is accepted, because its number is missing.
 */
export type NackReason = 'fork' | 'target-unknown'

export interface ResumedFrame {
  readonly kind: 'resumed'
  readonly generation: number
  /** The position that was asked for: what is delivered next comes right after it. */
  readonly position: Position
  /** The number of the final order after which `order` continues. */
  readonly ordered: number
  readonly floor: number
  readonly last: LogPlace | null
  /** How many entries were sent on this connection before. */
  readonly sent: number
}

/**
 * `expired`: the log does not go back so far. `unknown`: no region remembers what this epoch of the client has sent.
 */
export type ResetReason = 'expired' | 'unknown'

/** A refused resume still says what was accepted, and where to continue. */
export interface ResetFrame {
  readonly kind: 'reset'
  readonly generation: number
  readonly why: ResetReason
  readonly floor: number
  readonly last: LogPlace | null
  /**
   * With a snapshot: the head, read before the snapshot was taken, so that no entry is missed. Without one: the end of what
   * was removed; a client continues from there, or from its own position if that is further.
   */
  readonly position: Position
  readonly ordered: number
  /** What the application makes of everything up to the head; null where it makes nothing. */
  readonly snapshot: unknown
}

/** The region ended this session, and no other of the connection. */
export interface EndedFrame {
  readonly kind: 'ended'
  /** One of `closeCodes`, as if the session had had the connection for itself. */
  readonly code: number
  readonly reason: string
}

/**
 * Why a server ends a session or a connection: WebSocket close codes of the private range, each with one meaning. After
 * `badFrame`, `tooLarge`, `flooded` and `silent` the whole connection is closed.
 */
export const closeCodes = {
  /** The frame is not one of ours, or came at the wrong time. */
  badFrame: 4400,
  notAllowed: 4403,
  /** The position names entries of the region's own log which it never wrote. */
  futurePosition: 4406,
  /** Another process has this identity: take a new one. */
  cloned: 4409,
  /** A newer connection of the same client is open. */
  fenced: 4410,
  tooLarge: 4413,
  /** More was sent than the window allows. */
  flooded: 4429,
  /** The connection was silent for too long. */
  silent: 4408,
  /** The region fails or stops: come back, or go elsewhere. */
  unavailable: 4503,
} as const

export type CloseReason = keyof typeof closeCodes

/** One text for an identity, as a key of maps and of stores. */
export function identityText({ client, epoch, cseq }: MessageIdentity): string {
  return `${client}/${epoch}/${cseq}`
}
