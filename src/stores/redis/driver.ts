import { SECOND } from '../../core/limits.ts'
import { backoffMs } from '../../core/retry.ts'

/**
 * The part of `ioredis` that the store borrows. `new Redis(…)` and `new Cluster(…)` fit it by shape, so that the package
 * neither imports nor pins a driver.
 */
export interface RedisLink {
  readonly status: string
  call(command: string, ...args: (string | number)[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'ready' | 'close', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

export interface SingleClient extends RedisLink {
  duplicate(override: typeof single): RedisLink
}

export interface ClusterClient extends RedisLink {
  duplicate(nodes: [], override: typeof cluster): RedisLink
}

export type RedisClient = (SingleClient | ClusterClient) & { readonly isCluster: boolean }

const RECONNECT = { baseMs: 50, capMs: 1 * SECOND }
const reconnectMs = (times: number): number => backoffMs(times, RECONNECT, Math.random())

/** A command whose answer was lost may have taken effect; only its caller knows whether to send it again. */
const nothingTwice = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }

/** A command that cannot be sent now fails now: its caller has a deadline, and knows how to repeat it. */
const nothingQueued = { lazyConnect: false, enableOfflineQueue: false }

const single = { ...nothingQueued, ...nothingTwice, retryStrategy: reconnectMs }
const cluster = {
  ...nothingQueued,
  redisOptions: nothingTwice,
  clusterRetryStrategy: reconnectMs,
  retryDelayOnFailover: 0,
}

/** The store never sends through the client that it was given, but through connections like it, under these settings. */
export function connectionLike(client: RedisClient): RedisLink {
  const own = isCluster(client) ? client.duplicate([], cluster) : client.duplicate(single)
  // An error also fails the commands under way, which is where it is told.
  own.on('error', () => undefined)
  return own
}

function isCluster(client: RedisClient): client is ClusterClient & RedisClient {
  return client.isCluster
}
