import type { PostgresPlace } from '../harness/postgres.ts'

/** What a round is to do; the same for both sides, but for `protected`. */
export interface OverheadTask extends ServerTask {
  readonly callers: number
  readonly warmUpMs: number
  /** So many, however slow the machine is: what is not compiled yet is several times as slow. */
  readonly warmUpRequests: number
  readonly measureMs: number
  /** `first`: every request has a key of its own. `replay`: the keys were used before the measurement begins. */
  readonly requests: 'first' | 'replay'
}

/** The input of the server process. */
export interface ServerTask {
  readonly protected: boolean
  /** Metrics and timings of everything that happens; off when left out. */
  readonly telemetry?: boolean
  /** The handler inserts a row here; null: it does nothing. */
  readonly place: PostgresPlace | null
}

export const PATH = '/orders'

/** Asked at the end, past the clock: what the handler really did. */
export const COUNT_PATH = '/effects'

/** More than one, so that a replay is found among others; fewer than a second of replays, so that all are used. */
export const REPLAYED_KEYS = 1_000
