import { SECOND } from '../ledger/core/limits.ts'

/** Bounds of streams that both ends of a session need: these alone are part of a client in a browser. */
export const sessionLimits = {
  /** One frame of a client: a long chat message with its vectors; files travel elsewhere. */
  clientFrameBytes: 64 * 1_024,
  /** One frame of a server: a batch of entries, or a snapshot. */
  serverFrameBytes: 4 * 1_024 * 1_024,
  /** Names of rooms, regions, clients and logs: they stand in every entry. */
  nameChars: 64,
  /** Regions of one room, those included that lost their log and began another: the length of every vector. */
  logs: 64,
  /** Sends of one session that are not answered yet: what a client's window allows, and as much on its way. */
  sendWindow: 128,
  /**
   * Bytes of a client's messages on their way to the region: enough to fill a fast line with short ones. At least one
   * is.
   */
  sendWindowBytes: 128 * 1_024,
  /** Bytes of a client's messages that no region has acknowledged: some hours of writing without a connection. */
  pendingBytes: 64 * 1_024 * 1_024,
  /** Entries sent to one client and not yet taken by it; past it, it is a cursor in the log and costs no memory. */
  aheadEntries: 256,
  aheadBytes: 1_024 * 1_024,
  /**
   * Senders by whose numbers a client recognises a second copy that comes from another region, and messages of servers,
   * which have no numbers: as many as a log keeps, about ten megabytes. Past it the oldest are forgotten.
   */
  knownSenders: 50_000,
  knownPublished: 50_000,
  /** Entries of one `deliver` frame: small enough to interleave with acknowledgements. */
  deliverEntries: 64,
  /** Rows of one `order` frame. */
  orderRows: 256,
  /** A write or read that failed is tried again after this, doubling up to the cap. */
  storeRetryBaseMs: 100,
  storeRetryCapMs: 5 * SECOND,
  /** A session that is silent for this long is over; clients ping at a third of it. */
  silenceMs: 30 * SECOND,
  /** A client connects again after this, doubling up to the cap, each time a random part of it. */
  reconnectBaseMs: 250,
  reconnectCapMs: 10 * SECOND,
} as const

/** Any of which a client may be given differently. */
export type SessionBounds = { readonly [bound in keyof typeof sessionLimits]: number }
