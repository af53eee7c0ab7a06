/** Every wait of the server helper, with its unit last and its reason beside it. */

/**
 * PostgreSQL is ready after about a second and RabbitMQ after about eight; a loaded CI machine may need several times
 * that.
 */
export const START_BOUND_MS = 60_000
/**
 * How often a starting server is asked whether it is ready. Asking is one small file read or one loopback connection.
 */
export const READY_POLL_MS = 20
/**
 * A free port may be taken by another process before the server binds it. Losing that race three times is not bad luck.
 */
export const START_ATTEMPTS = 3

/** A server that has not ended this long after its stop signal is killed: its data is thrown away in any case. */
export const STOP_GRACE_MS = 10_000
/** The grace, then the kill and the removal of the folder. After that `stop()` reports what it could not remove. */
export const STOP_BOUND_MS = STOP_GRACE_MS + 10_000

/** One answer to a probe of a starting server. */
export const PROBE_BOUND_MS = 1_000

/** One run of apt-get, waiting for another run's lock included: some hundred megabytes over a slow line. */
export const INSTALL_BOUND_MS = 600_000

/** How much of a server's log an error quotes: enough for the reason, short enough for a terminal. */
export const LOG_TAIL_LINES = 15

/** A query that creates or drops a database copies or removes a few megabytes; minutes mean that it is stuck. */
export const DATABASE_BOUND_MS = 30_000

/** Killed processes are gone within milliseconds; one that is swapped out or written to a slow disk takes longer. */
export const NODE_ENDED_BOUND_MS = 10_000
