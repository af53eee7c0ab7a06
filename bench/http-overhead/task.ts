import type { Slices } from '../harness/load.ts'
import type { PostgresPlace } from '../harness/postgres.ts'

export const adapters = ['fastify', 'express', 'hono', 'koa', 'fetch'] as const

export type AdapterName = (typeof adapters)[number]

/** What a round is to do; the same for both sides, but for `protected`. */
export interface OverheadTask extends ServerTask {
  readonly callers: number
  readonly warmUpMs: number
  /** So many, however slow the machine is: what is not compiled yet is several times as slow. */
  readonly warmUpRequests: number
  readonly measureMs: number
  /** With one caller only: the measurement in pieces, taken by turns with the other side. */
  readonly slices?: Slices
  /** `first`: every request has a key of its own. `replay`: the keys were used before the measurement begins. */
  readonly requests: 'first' | 'replay'
}

/** The input of the server process. */
export interface ServerTask {
  readonly adapter: AdapterName
  readonly protected: boolean
  /** Metrics and timings of everything that happens, in Fastify; off when left out. */
  readonly telemetry?: boolean
  /** Records are encrypted; off when left out. */
  readonly encrypted?: boolean
  readonly work: Work
}

/** What the handler does beside its answer. */
export type Work =
  | { readonly kind: 'empty' }
  /** One insert, with the records in memory. */
  | { readonly kind: 'insert'; readonly place: PostgresPlace }
  /** One insert in a transaction, ours with the record of its key in the same one. */
  | { readonly kind: 'transaction'; readonly place: PostgresPlace }

export const EMPTY: Work = { kind: 'empty' }

export const PATH = '/orders'

/** Asked at the end, past the clock: what the handler really did. */
export const COUNT_PATH = '/effects'

/** More than one, so that a replay is found among others; fewer than a second of replays, so that all are used. */
export const REPLAYED_KEYS = 1_000
