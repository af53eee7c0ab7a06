/** The bounds of the test proxy, units last. */

/**
 * More than any test opens through one proxy; a client that leaks connections is refused before the machine suffers.
 */
export const CONNECTIONS_MAX = 1_000
/** Bytes held back in one direction of one connection. Beyond it the sender is no longer read, as on a real network. */
export const LANE_BYTES_MAX = 1_048_576
/** A longer delay is a test that hangs. */
export const DELAY_MAX_MS = 60_000
/** An answer without a recognisable end has ended when nothing more of it came for this long. */
export const ANSWER_QUIET_MS = 100
/** How much of a lost answer is kept to look for its end: more than the closing message of any protocol we use. */
export const ANSWER_TAIL_BYTES = 64
/** An answer that never falls quiet (a stream of notifications, say) is cut off after this long. */
export const ANSWER_BOUND_MS = 10_000
