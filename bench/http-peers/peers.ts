import { Redis } from 'ioredis'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { redisStore } from 'onceonly/redis'
import type { Order } from '../harness/orders.ts'
import { loadPeer } from '../harness/peers.ts'
import type { PeerTask } from './task.ts'

/** One way to run an effect once per key. */
export interface OpenPeer {
  run(key: string, order: Order, effect: () => Promise<unknown>): Promise<unknown>
  stop(): Promise<void>
}

export async function openPeer({ peer, place }: PeerTask): Promise<OpenPeer> {
  const client = place === null ? null : new Redis(place.url)
  switch (peer) {
    case 'ours':
      return openOurs(client)
    case 'node-idempotency':
      return await openNodeIdempotency(client)
    case 'powertools':
      return await openPowertools(client)
    case 'express-idempotency':
      throw new Error('It has no library without Express.')
  }
}

function openOurs(client: Redis | null): OpenPeer {
  const store = client === null ? memoryStore() : redisStore(client)
  const ledger = createLedger({ store })
  const operation = ledger.operation({ name: 'order', effect: 'repeatable' })
  return {
    run: (key, order, effect) => operation.run({ tenant: 'acme', caller: 'checkout', key }, order, effect),
    stop: async () => {
      await ledger.stop()
      await store.stop()
      client?.disconnect()
    },
  }
}

interface NodeIdempotency {
  onRequest(request: unknown): Promise<{ readonly body?: unknown } | undefined>
  onResponse(request: unknown, response: { readonly body: unknown }): Promise<void>
}

/** Its own memory adapter; on Redis the three commands of its Redis adapter, through the same driver as ours. */
async function openNodeIdempotency(client: Redis | null): Promise<OpenPeer> {
  const { Idempotency } = await loadPeer<{
    Idempotency: new (storage: unknown, options: unknown) => NodeIdempotency
  }>('@node-idempotency/core')
  const { MemoryStorageAdapter } = await loadPeer<{ MemoryStorageAdapter: new () => unknown }>(
    '@node-idempotency/storage-adapter-memory',
  )
  const idempotency = new Idempotency(client === null ? new MemoryStorageAdapter() : storageOn(client), {})
  return {
    run: async (key, order, effect) => {
      const request = { headers: { 'idempotency-key': key }, path: '/orders', method: 'POST', body: order }
      const known = await idempotency.onRequest(request)
      if (known !== undefined) return known.body
      const body = await effect()
      await idempotency.onResponse(request, { body })
      return body
    },
    stop: async () => client?.disconnect(),
  }
}

function storageOn(client: Redis) {
  type Ttl = { readonly ttl?: number }
  return {
    setIfNotExists: async (key: string, value: string, { ttl = 0 }: Ttl = {}) =>
      (await (ttl > 0 ? client.set(key, value, 'PX', ttl, 'NX') : client.set(key, value, 'NX'))) === 'OK',
    set: async (key: string, value: string, { ttl = 0 }: Ttl) =>
      void (await (ttl > 0 ? client.set(key, value, 'PX', ttl) : client.set(key, value))),
    get: async (key: string) => (await client.get(key)) ?? undefined,
  }
}

const LEASE_MS = 30_000

type MakeIdempotent = <F extends (...args: never[]) => Promise<unknown>>(effect: F, options: unknown) => F

/** Its persistence for caches, over ioredis or over a map. */
async function openPowertools(client: Redis | null): Promise<OpenPeer> {
  const { makeIdempotent, IdempotencyConfig } = await loadPeer<{
    makeIdempotent: MakeIdempotent
    IdempotencyConfig: new (options: unknown) => { registerLambdaContext(context: unknown): void }
  }>('@aws-lambda-powertools/idempotency')
  const { CachePersistenceLayer } = await loadPeer<{ CachePersistenceLayer: new (options: unknown) => unknown }>(
    '@aws-lambda-powertools/idempotency/cache',
  )
  const persistenceStore = new CachePersistenceLayer({ client: client === null ? mapCache() : redisCache(client) })
  // Without a look at the payload: on this persistence its own validation refuses every replay.
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'key' })
  config.registerLambdaContext({ getRemainingTimeInMillis: () => LEASE_MS })
  const protectedRun = makeIdempotent(
    async ({ effect }: { key: string; order: Order; effect: () => Promise<unknown> }) => effect(),
    { persistenceStore, config },
  )
  return {
    run: (key, order, effect) => protectedRun({ key, order, effect }),
    stop: async () => client?.disconnect(),
  }
}

interface SetOptions {
  readonly EX?: number
  readonly NX?: boolean
}

function mapCache() {
  const values = new Map<string, string>()
  return {
    get: async (name: string) => values.get(name) ?? null,
    set: async (name: string, value: string, { NX = false }: SetOptions = {}) => {
      if (NX && values.has(name)) return null
      values.set(name, value)
      return 'OK'
    },
    del: async (names: string[]) => names.filter((name) => values.delete(name)).length,
  }
}

function redisCache(client: Redis) {
  return {
    get: (name: string) => client.get(name),
    set: (name: string, value: string, { EX, NX = false }: SetOptions = {}) => {
      const args = [...(EX === undefined ? [] : ['EX', EX]), ...(NX ? ['NX'] : [])]
      return client.call('SET', name, value, ...args)
    },
    del: (names: string[]) => client.del(...names),
  }
}
