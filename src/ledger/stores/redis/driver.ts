import { OnceError } from '../../core/errors.ts'
import { kindOf } from '../../core/option-names.ts'
import type { RedisLink } from './link.ts'
import { reconnectMs } from './link.ts'
import type { NodeRedisClient } from './node-redis.ts'
import { nodeRedisLink } from './node-redis.ts'

export interface SingleClient extends RedisLink {
  duplicate(override: typeof single): RedisLink
}

export interface ClusterClient extends RedisLink {
  duplicate(nodes: [], override: typeof cluster): RedisLink
}

type IoRedisClient = (SingleClient | ClusterClient) & { readonly isCluster: boolean }

export type RedisClient = IoRedisClient | NodeRedisClient

/** A command whose answer was lost may have taken effect; only its caller knows whether to send it again. */
const nothingTwice = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }

/** A command that cannot be sent now fails now: its caller has a deadline, and knows how to repeat it. */
const nothingQueued = { lazyConnect: false, enableOfflineQueue: false }

const single = { ...nothingQueued, ...nothingTwice, retryStrategy: reconnectMs }
const cluster = {
  lazyConnect: false,
  // Its nodes are connected to one by one, when they are first needed: what is for a node that is just being connected to
  // waits for that, and fails with the first try that does.
  enableOfflineQueue: true,
  redisOptions: nothingTwice,
  clusterRetryStrategy: reconnectMs,
  retryDelayOnFailover: 0,
}

/**
 * The store never sends through the client that it was given, but through connections like it, under these settings.
 */
export function connectionLike(client: RedisClient): RedisLink {
  if (!isIoRedis(client)) return nodeRedisLink(client)
  const own = isCluster(client) ? client.duplicate([], cluster) : client.duplicate(single)
  // An error also fails the commands under way, which report it.
  own.on('error', () => undefined)
  return own
}

/** Types cannot distinguish every client from one that only looks like it. */
export function checkClient(client: unknown): void {
  const which = '`new Redis()` or `new Cluster()` of `ioredis`, or `createClient()` of `redis`, version 5 or newer'
  const wrong = (what: string) => new OnceError('bad_option', `redisStore needs a client, not ${what}. Pass ${which}.`)
  if (typeof client === 'string') throw wrong('a URL')
  if (typeof client !== 'object' || client === null) throw wrong(kindOf(client))
  if ('isCluster' in client) return
  if ('client' in client) throw wrong('an object with one: the options come after it')
  if ('slots' in client) {
    throw new OnceError('bad_option', 'redisStore cannot use a cluster of `redis`. Pass a `Cluster` of `ioredis`.')
  }
  const can = (name: string) => name in client && typeof client[name as keyof typeof client] === 'function'
  if (!can('duplicate') || !can('sendCommand') || !can('destroy') || !('isReady' in client)) {
    throw wrong('an object without its methods')
  }
}

export function isClusterClient(client: RedisClient): boolean {
  return isIoRedis(client) && isCluster(client)
}

function isIoRedis(client: RedisClient): client is IoRedisClient {
  return 'isCluster' in client
}

function isCluster(client: IoRedisClient): client is ClusterClient & IoRedisClient {
  return client.isCluster
}
