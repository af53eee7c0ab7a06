import { SECOND } from '../../ledger/core/limits.ts'

/** Bounds of what a server takes on at once, each with its unit and its reason. */

const MIB = 1_024 * 1_024

/** The bounds that the gateway and the server use. */
export const frontLimits = {
  /** Bodies in memory, all together: a process that has 512 MiB stays below that with everything else it needs. */
  bodyBytes: 256 * MIB,
  /** Of it, one caller alone: some dozens of the largest bodies, and three quarters are left for the others. */
  bodyShare: 0.25,
  /** Connections that wait to be accepted: with Node's 511 a burst makes others wait for seconds; Linux allows as many as this. */
  backlog: 4_096,
  /** Connections of clients: each takes some kilobytes, whether it says something or not. */
  connections: 16_384,
  /** Requests of one connection that are not answered yet: browsers send one, load tools some tens, and a packet holds thousands. */
  pipelined: 64,
  /** Of all places, one caller alone: where there is only one caller, a quarter more would change little. */
  placeShare: 0.75,
  /** When a refused client may come back: long enough for a short peak to pass, and at random, so that not all come at once. */
  retryLeastMs: 1 * SECOND,
  retryMostMs: 5 * SECOND,
  /** How often bodies on their way are looked at: they are cut at most this much later than promised. */
  paceEveryMs: 500,
} as const
