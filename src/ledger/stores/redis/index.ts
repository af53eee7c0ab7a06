import { checkOptionNames } from '../../core/option-names.ts'
import type { Encryption } from '../../store/encryption/options.ts'
import { withEncryption } from '../../store/encryption/store.ts'
import type { Call, Store } from '../../store/port.ts'
import { createClaims } from './claims.ts'
import { createClock } from './clock.ts'
import { createCore } from './core.ts'
import type { RedisClient } from './driver.ts'
import { checkClient, isClusterClient } from './driver.ts'
import type { Durability } from './durability.ts'
import { readDurability } from './durability.ts'
import type { StoreReset } from './epochs.ts'
import { namesOf } from './names.ts'
import { createQueries } from './queries.ts'
import { createUpkeep } from './upkeep.ts'
import { createWatchers } from './watch.ts'

export type { RedisClient } from './driver.ts'
export type { Durability, DurabilityRisk } from './durability.ts'
export type { StoreReset } from './epochs.ts'

export interface RedisStoreOptions {
  /**
   * Begins the name of every key, so that several stores can share a server.
   * @default 'onceonly'
   */
  readonly prefix?: string
  /**
   * In how many parts the records are kept, 1 to 16; a part lives on one node of a cluster. All processes must agree,
   * and it cannot be changed later.
   * @default 1 on a server, 4 on a cluster
   */
  readonly buckets?: number
  /**
   * Lets `store.clock.advance` move the store's time, for tests. `ONCEONLY_TEST_CLOCK=1` does the same.
   * @default false
   */
  readonly testClock?: boolean
  /**
   * Encrypts what the store keeps. A store that was encrypted refuses processes without its keys.
   * @default none
   */
  readonly encryption?: Encryption
  /**
   * Uses a server that removes records when its memory is full, which runs effects again. Without it such a server is refused
   * at the first use, unless it does not show its settings.
   * @default false
   */
  readonly allowEviction?: boolean
  /** Called when Redis has lost what it had acknowledged. @default none */
  readonly on?: (event: StoreReset) => void
}

export interface RedisStore extends Store {
  /** Whether the server keeps what it acknowledges, and what may be lost if not. */
  durability(call: Call): Promise<Durability>
}

/** A server runs one script at a time, and has less to do with few large ones; a small cluster has work for each node. */
const SERVER_BUCKETS = 1
const CLUSTER_BUCKETS = 4

/**
 * Claims on Redis 6.2 or newer. There are no transactions: an effect in a database belongs into a store in it.
 *
 * @param client Your own client: of `ioredis`, for a server or a cluster, or of `redis`, for a server. The store makes
 * two connections of its own from it, and sends nothing through it.
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import { createLedger } from 'onceonly'
 * import { redisStore } from 'onceonly/redis'
 *
 * const once = createLedger({ store: redisStore(new Redis(process.env.REDIS_URL ?? '')) })
 * ```
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  checkClient(client)
  checkOptionNames('redisStore', options, ['prefix', 'buckets', 'testClock', 'allowEviction', 'on', 'encryption'])
  const usualBuckets = isClusterClient(client) ? CLUSTER_BUCKETS : SERVER_BUCKETS
  const { prefix = 'onceonly', buckets = usualBuckets, on = () => undefined } = options
  const names = namesOf(prefix, buckets)
  const core = createCore({ client, names, allowEviction: options.allowEviction ?? false, report: on })
  const watchers = createWatchers(client, names)
  const testClock = options.testClock ?? process.env['ONCEONLY_TEST_CLOCK'] === '1'
  const claims = createClaims(core, watchers)
  let stopping: Promise<void> | null = null

  async function stop(): Promise<void> {
    await core.drain(claims.stop())
    watchers.stop()
    core.connection.stop()
  }

  const store: RedisStore = {
    name: 'redis',
    claims,
    queries: createQueries(core),
    upkeep: createUpkeep(core),
    clock: createClock(core, testClock),
    durability: (call) => readDurability(core, call),
    stop: () => (stopping ??= stop()),
  }
  return withEncryption(store, options.encryption)
}
