import { DAY, MINUTE, SECOND } from '../ledger/core/limits.ts'
import { sessionLimits } from './session-limits.ts'

/** Bounds of streams, each with its unit and its reason. */

/** What sessions of streams take and hold. */
export const streamLimits = {
  ...sessionLimits,
  /**
   * A snapshot, as JSON: leaves room in its frame for everything else. One that is larger counts as none, and is a
   * problem.
   */
  snapshotBytes: 3 * 1_024 * 1_024,
  /**
   * Bytes of one session's frames that are not answered: again the window and as much, whatever the session waits for.
   */
  sendBytes: 256 * 1_024,
  /** And of all sessions of one connection: a few rooms at their bound, and the others as usual. */
  connectionBytes: 1_024 * 1_024,
  /** Rooms of one connection: each is a session, with a cursor of its own. */
  connectionRooms: 256,
  /**
   * Taken by a connection but not by the network: past it nothing more is read for it, so that a client which stops
   * reading stays small.
   */
  linkBytes: 32 * 1_024,
  /** Bytes of the entries of one `deliver` frame: small enough to interleave with acknowledgements. */
  deliverBytes: 32 * 1_024,
  /** Entries of a room that stay in memory for clients that keep up; a client further back reads the log. */
  tailEntries: 1_024,
  /**
   * Of these entries, too, as texts: a thousand of a usual size. Entries are dropped by halves, at twice of either
   * bound.
   */
  tailBytes: 1_024 * 1_024,
  /**
   * Entries of a room that wait for causes from another region, and their bytes as JSON: what is refused is pulled
   * again.
   */
  waitingEntries: 4_096,
  waitingBytes: 16 * 1_024 * 1_024,
  /** One write of a room: large enough to share a commit, small enough to stay short. */
  writeEntries: 256,
  /** Sends of a room that wait for a commit. */
  writeQueue: 16_384,
  /** And their bytes: a store that is down for a while must not fill the memory. */
  writeQueueBytes: 16 * 1_024 * 1_024,
  /** Entries of one answer to a peer, and the bytes of their bodies. */
  pullEntries: 256,
  pullBytes: 1_024 * 1_024,
  /**
   * Rooms of a region that read and write their logs at once, beside what their clients send: hundreds that are opened together would block
   * all other work at the store.
   */
  roomWork: 4,
  /** A region without hints polls its peers after this: hints may be lost. */
  pullEveryMs: 1 * SECOND,
  /**
   * A quiet room polls ever less often, down to this: its peers, what other processes of its region wrote, and the final
   * order. Hints wake it, so that only what a lost hint announced is late, by this at most.
   */
  dozeMs: 10 * SECOND,
  /** A peer that does not answer within this is down. */
  pullMs: 5 * SECOND,
  /**
   * How long a client that comes from another region waits for that region to end its old session: several round trips
   * around the world and a commit. A region that is down must lock no client out.
   */
  fenceMs: 2 * SECOND,
  /** A peer that is down is retried after this, doubling up to the cap. */
  pullRetryBaseMs: 250,
  pullRetryCapMs: 5 * SECOND,
  /** After this without the missing entries, peers are asked for other regions' logs, too. */
  detourMs: 2 * SECOND,
  /**
   * How long a server waits for its message to become durable, causes included: shorter than an outbox waits for its
   * publisher. A message that is late may be stored all the same; with its id it is published again.
   */
  publishMs: 4 * SECOND,
  /** The right to number a room's messages; renewed at every third of it. */
  orderLeaseMs: 10 * SECOND,
  /** How often a region looks for new numbers that others gave, until all that it knows of has one. */
  orderEveryMs: 250,
  /** A log goes back this far, or this many entries, whichever is less. */
  retainMs: 10 * MINUTE,
  retainEntries: 50_000,
  /**
   * Final places outlive their entries: a peer may bring an entry when that is almost past its time, and keeps it as long
   * again; a store that had forgotten the place would give a second one.
   */
  orderRetainMs: 20 * MINUTE,
  /** What a client has sent is remembered for longer than the messages: a tab that slept for a night continues. */
  retainClientsMs: 7 * DAY,
  /**
   * Messages of servers are recognised by their ids for this long, and so many of a room: each has a row and a line in
   * the image of its room, which must not outgrow an answer to a peer. A log that keeps more recognises all of it.
   */
  retainPublishedMs: 1 * DAY,
  retainPublished: 100_000,
  /** Pause between two looks for entries past their retention. */
  trimEveryMs: 30 * SECOND,
  /** Rooms that one process takes on at a time to look for such entries: others share in the work. */
  sweepRooms: 100,
  /**
   * Rooms that one process of a region has open: each keeps its newest entries in memory and polls. To open one more, an
   * empty room is closed; when no room is empty, the client is sent elsewhere.
   */
  openRooms: 1_000,
  /** A room stays open for this long after the last client came to it: another may be about to join. */
  enterMs: 10 * SECOND,
  /** An empty room that no client or peer has used for this long is closed; its log stays. */
  roomIdleMs: 5 * MINUTE,
  /** A connection without a session is closed after this. */
  helloMs: 10 * SECOND,
} as const

/** Limits of the exchange over NATS JetStream, beside the bounds of streams. */
export const natsExchangeLimits = {
  /** A hint that the server has not confirmed within this counts as lost. */
  confirmMs: 2 * SECOND,
  /** Positions are sent without asking for a confirmation, except for one after so many, or so many bytes. */
  askEvery: 16,
  askBytes: 256 * 1_024,
  /** Hints on their way at a time, and their bytes. Past either no more entries are sent along: peers pull them. */
  underWay: 1_024,
  underWayBytes: 8 * 1_024 * 1_024,
  /**
   * Session announcements that wait for a server that is down, the last of each client; past it the oldest are dropped.
   */
  owedEntrances: 10_000,
  /** All that the stream keeps, of all regions: ten minutes of a thousand short messages a second. */
  streamBytes: 512 * 1_024 * 1_024,
  /** Several processes of a region send their hints beside each other: an entry may come this much after later ones. */
  skewEntries: 256,
  /** Messages that are unreadable and follow each other, in a search: past it the search takes them for old. */
  unreadableInRow: 16,
  /** Messages that one pull reads out of the stream. */
  copyMessages: 2_048,
  /** Messages that the server sends ahead to a region that follows. */
  followAhead: 512,
  /** How often a server sends a heartbeat to a consumer that gets no messages. */
  heartbeatMs: 5 * SECOND,
  /** How long one request for messages stands. */
  requestMs: 30 * SECOND,
} as const
