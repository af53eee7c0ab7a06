import type { RedisPlace } from '../harness/redis.ts'

/** The protection that a side puts before the same effect. */
export type Peer = 'ours' | 'node-idempotency' | 'powertools' | 'express-idempotency'

export interface PeerTask {
  readonly peer: Peer
  readonly callers: number
  readonly warmUpMs: number
  readonly warmUpRequests: number
  readonly measureMs: number
  /** Null keeps the records in memory. */
  readonly place: RedisPlace | null
}

export const PATH = '/orders'
/** Asked at the end, past the clock: what the handler really did. */
export const COUNT_PATH = '/effects'
