/**
 * What a region needs from outside, in four ports: its log, the final order, its peers and its connections. Everything
 * that waits or fails goes through them, so that the same region runs on a real store and in the simulator.
 */

import type { FrameData, FrameFormat } from './protocol/codec.ts'
import type { Entry, LogPlace, MessageContent, MessageIdentity, Position } from './protocol/protocol.ts'

/**
 * The durable memory of one region: for each room its own log, the other regions' logs as far as they were merged, the
 * order in which all these entries were merged here (`at`), what each client has sent, and which session it has.
 *
 * Several processes may serve one region on one log: numbers are given under the room's lock, without gaps, in the order
 * of the commits.
 */
export interface RoomLog {
  /** The room's current state; a room without writes is empty, not missing. */
  open(room: string): Promise<RoomState>
  /** Makes this the client's only session, durably, before anything is replayed to it. */
  enter(room: string, claim: SessionClaim): Promise<Entered>
  /** One transaction. Repeating it is safe: what is there already is not written again. */
  write(room: string, batch: RoomBatch): Promise<RoomWritten>
  /** Where a reader at this position starts: every entry up to `at` is covered by it, and the next is not. */
  find(room: string, position: Position): Promise<FoundPosition>
  /** Entries in the order in which they were merged here, from the one after `at` on; causes come first. */
  read(room: string, after: number, bound: ReadBound): Promise<readonly StoredEntry[]>
  /** What is known of a client's messages; null when nothing is. */
  sender(room: string, client: string, epoch: number): Promise<SenderState | null>
  /**
   * Rooms with entries past their retention, open or not. Each is given to one caller, and to no other before `againMs`
   * have passed.
   */
  due(againMs: number, most: number): Promise<readonly string[]>
  /** Removes the oldest entries past the bounds, clients that have been silent for long, and old messages of servers. */
  trim(room: string, keep: Retention): Promise<Trimmed>
  /**
   * The room's position, the last number of every client and the messages of servers that are recognised, at one moment:
   * the start for a region that fell too far behind.
   */
  image(room: string): Promise<RoomImage>
  /** Takes a peer's image: whatever other logs had up to there counts as removed here. Own entries stay. */
  adopt(room: string, image: RoomImage): Promise<void>
  /** Calls `wake` when another process may have written to the room. A hint: readers also poll. */
  listen(room: string, wake: () => void): { stop(): void }
}

export interface RoomState {
  /** The name of this region's own log: region, dot, epoch of the log. */
  readonly log: string
  /** How many entries of each log were merged. */
  readonly position: Position
  /** The number of the entry that was merged last; 0 for none. */
  readonly at: number
}

/** An entry, and how it was merged here. */
export interface StoredEntry extends Entry {
  /** Of body and `replyTo`: distinguishes a copy from a fork. */
  readonly digest: string
  /** Consecutive from 1 in this region and room. */
  readonly at: number
  /** Its identity was merged before, from another log: counted, never delivered. */
  readonly copy: boolean
}

/** An entry as regions exchange it. */
export type ExchangedEntry = Entry & { readonly digest: string }

export interface SessionClaim {
  readonly client: string
  readonly epoch: number
  readonly generation: number
  readonly instance: string
}

export type Entered =
  | { readonly kind: 'entered'; readonly sender: SenderState | null }
  /** A later generation has entered. */
  | { readonly kind: 'fenced'; readonly generation: number }
  /** The same generation has entered from another instance. */
  | { readonly kind: 'cloned' }

export interface SenderState {
  /** Everything below it was merged here. */
  readonly floor: number
  /** Where the one just below the floor stands, as it was merged first. */
  readonly last: LogPlace
}

export interface RoomImage {
  readonly position: Position
  readonly senders: readonly (SenderState & { readonly client: string; readonly epoch: number })[]
  readonly published: readonly PublishedState[]
}

/** What is known of a server's message, also when its entry was removed: its sender has no other. */
export interface PublishedState {
  readonly client: string
  /** Of its body and `replyTo`: another body under the id is a fork for as long as this is known. */
  readonly digest: string
  /** Where it was merged first. */
  readonly place: LogPlace
}

export interface RoomBatch {
  /**
   * Entries of other logs, causes first, each the next one of its log. One that is there already is passed over: another
   * process of this region was faster.
   */
  readonly merged: readonly ExchangedEntry[]
  /** Sends of this region's clients, which come after all of `merged`. */
  readonly sends: readonly SendRequest[]
}

/** A message to accept, under the session that sent it. */
export interface SendRequest extends MessageIdentity, MessageContent {
  /** Null for a message of a server, which has no session: its identity comes from its id, and is written once. */
  readonly generation: number | null
  readonly digest: string
}

/** Decided in the transaction, in this order: session, number, digest, target. */
export type SendResult =
  /** Stands in a log, now or from before. The place is null when that was so long ago that it was trimmed. */
  | { readonly kind: 'accepted'; readonly place: LogPlace | null; readonly duplicate: boolean }
  /** A later session of the client has entered. */
  | { readonly kind: 'fenced' }
  /** The numbers from the floor up to it are missing here. */
  | { readonly kind: 'gap'; readonly floor: number }
  /** The number belongs to another body: known for as long as the entry is kept, and for a server's id longer. */
  | { readonly kind: 'fork' }
  /** It replies to a message that was never merged here. What is accepted has its target among its causes. */
  | { readonly kind: 'target-unknown' }

export interface RoomWritten {
  /** One for each send, in its order. */
  readonly results: readonly SendResult[]
  /** What was stored, in order of `at`; other processes may have stored entries before and between. */
  readonly stored: readonly StoredEntry[]
  readonly forks: readonly Fork[]
}

/**
 * Two regions that could not reach each other accepted one number with two bodies, from two clones of a client. Each
 * region keeps showing the one that came first there; only a person can decide between them.
 */
export interface Fork extends MessageIdentity {
  /** What this region shows under the identity. */
  readonly shown: LogPlace
  /** What was merged now, counts as a copy, and is none. */
  readonly hidden: ExchangedEntry
}

export type FoundPosition =
  | { readonly kind: 'found'; readonly at: number }
  /** Entries that the position lacks were removed: whatever this covers may be gone, and the rest is there. */
  | { readonly kind: 'expired'; readonly removed: Position }

export interface ReadBound {
  readonly entries: number
  /** Of the bodies; at least one entry is read whatever its size. */
  readonly bytes: number
}

export interface Trimmed {
  readonly removed: number
  /** As many as are removed at a time: there may be others. */
  readonly more: boolean
}

export interface Retention {
  readonly olderThanMs: number
  readonly mostEntries: number
  /** What is known of clients, their numbers and sessions, is kept this long after their last message or entrance. */
  readonly clientsMs: number
  /** Messages of servers are recognised for this long, and so many of a room: never less than their entries. */
  readonly publishedMs: number
  readonly mostPublished: number
}

/**
 * The one final order of each room, in a store that all regions share. The holder of the room's lease appends to it in the
 * order in which the entries were merged there.
 */
export interface OrderLog {
  /** Takes or renews the lease of a room, by the store's clock; a lease of 0 ms is free for others at once. */
  claim(room: string, holder: string, leaseMs: number): Promise<OrderClaim>
  /** One transaction: the fence is checked, identities that have a place are passed over, the position is kept. */
  append(room: string, batch: OrderBatch): Promise<OrderAppended>
  /** Rows in order, from the one after `after` on. What was trimmed is left out: the first row may come later. */
  read(room: string, after: number, most: number): Promise<readonly OrderRow[]>
  /** The rows of those among them that have a place, in any order. */
  places(room: string, identities: readonly MessageIdentity[]): Promise<readonly OrderRow[]>
  /** Removes the oldest rows past the bounds. */
  trim(room: string, keep: Pick<Retention, 'olderThanMs' | 'mostEntries'>): Promise<Trimmed>
}

export type OrderClaim =
  | {
      readonly kind: 'held'
      readonly fence: number
      /** Everything that this covers has its place. */
      readonly position: Position
      /** The last number that was given; 0 for none. */
      readonly head: number
    }
  | { readonly kind: 'taken' }

export interface OrderBatch {
  readonly fence: number
  readonly identities: readonly MessageIdentity[]
  /** Covered once these have their places. */
  readonly position: Position
}

export type OrderAppended = { readonly kind: 'appended'; readonly head: number } | { readonly kind: 'lost' }

export interface OrderRow extends MessageIdentity {
  /** Consecutive from 1. */
  readonly g: number
}

/**
 * How regions reach each other. Entries are pulled by position, so that lost, repeated, late and reordered answers do no
 * harm; hints only say when to pull, and may be late, repeated or lost, too.
 */
export interface Exchange {
  /** Rejects when the peer cannot be reached, or does not answer in time. */
  pull(peer: string, request: PullRequest): Promise<PullAnswer>
  /** Has older sessions of a client ended by one peer, and waits for it. Rejects as `pull` does. */
  fence(peer: string, request: FenceRequest): Promise<FenceAnswer>
  hint(hint: RegionHint): void
  /** Begins to answer the peers for this region. */
  serve(region: RegionPeer): { stop(): Promise<void> }
}

/** What a region answers to its peers. */
export interface RegionPeer {
  pull(request: PullRequest): Promise<PullAnswer>
  /** Answers once nothing of an older session is accepted here any more. */
  fence(request: FenceRequest): Promise<FenceAnswer>
  hinted(hint: RegionHint): void
}

export interface PullRequest {
  readonly room: string
  /** What the asking region has merged. */
  readonly position: Position
  /** True: also entries of other regions' logs, for a region that cannot reach these. */
  readonly all: boolean
}

export type PullAnswer =
  | {
      readonly kind: 'entries'
      /** Each log's in its order, none missing from the position on. */
      readonly entries: readonly ExchangedEntry[]
      /** How far the answering region has come. */
      readonly position: Position
    }
  /** The answering region does not go back so far: start from its image. */
  | { readonly kind: 'expired'; readonly image: RoomImage }

/** A client has a session in the asking region. */
export interface FenceRequest {
  readonly room: string
  readonly claim: SessionClaim
}

/** `entered`: it is the client's newest session here, too. Else it is the asking session that is old, or a clone. */
export type FenceAnswer = { readonly kind: 'entered' } | Exclude<Entered, { readonly kind: 'entered' }>

export type RegionHint =
  | {
      readonly kind: 'position'
      readonly region: string
      readonly room: string
      readonly position: Position
      /** What was just accepted there, to save the pull; what is lost on the way is pulled all the same. */
      readonly entries: readonly ExchangedEntry[]
    }
  /** A client has a session there: older ones end everywhere. */
  | { readonly kind: 'entered'; readonly region: string; readonly room: string; readonly claim: SessionClaim }

/** A client's connection, as the region sees it. It carries the sessions of several rooms. */
export interface SessionLink {
  /** How frames are written on it. @default 'json' */
  readonly format?: FrameFormat
  /** Never throws and never waits: what cannot be sent any more is dropped. */
  send(data: FrameData): void
  close(code: number, reason: string): void
  /** Taken by `send` and not yet by the network. The region sends nothing more while it is large. */
  readonly bufferedBytes: number
}

/** What a transport reports to a region about one connection. */
export interface Session {
  received(data: FrameData): void
  /** `bufferedBytes` has fallen. */
  drained(): void
  closed(): void
}
