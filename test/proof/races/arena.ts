import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Store } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { createDatabase } from '../../../tools/servers/database.ts'
import type { Address } from '../../support/place.ts'
import { openStore, placeKinds, skipOf } from '../../support/place.ts'

/** Where a race is held: any store that several processes can share, with transactions or without. */
export type ArenaAddress = Address | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }
export type ArenaKind = ArenaAddress['kind']

export const arenaKinds: readonly ArenaKind[] = [...placeKinds, 'redis']

function redisUrl(): string | undefined {
  const url = process.env['ONCEONLY_TEST_REDIS_URL']
  if (url === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_REDIS_URL is not set')
  return url
}

/** For node:test: why an arena is left out, or false. */
export function skipArena(kind: ArenaKind): string | false {
  if (kind !== 'redis') return skipOf(kind)
  return redisUrl() === undefined ? 'no Redis server' : false
}

export function openArena(address: ArenaAddress): { readonly store: Store; close(): Promise<void> } {
  if (address.kind !== 'redis') return openStore(address)
  const client = new Redis(address.url)
  const store = redisStore(client, { prefix: address.prefix, testClock: true })
  const close = async () => {
    await store.stop()
    client.disconnect()
  }
  return { store, close }
}

/** A fresh one. What PostgreSQL holds of it is dropped at the end. */
export async function createArena(
  kind: ArenaKind,
  folder: string,
): Promise<{ readonly address: ArenaAddress; end(): Promise<void> }> {
  switch (kind) {
    case 'sqlite':
      return { address: { kind, path: join(folder, 'race.db') }, end: async () => undefined }
    case 'postgres': {
      const database = await createDatabase(process.env['ONCEONLY_TEST_POSTGRES_URL'] as string)
      return { address: { kind, url: database.url }, end: () => database.drop() }
    }
    case 'redis': {
      const address = { kind, url: redisUrl() as string, prefix: `race:${randomUUID()}` }
      return { address, end: async () => undefined }
    }
  }
}
