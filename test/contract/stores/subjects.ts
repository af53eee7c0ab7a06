import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Encryption, Store } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { postgresStore } from 'onceonly/postgres'
import { redisStore } from 'onceonly/redis'
import type { SqliteStoreOptions } from 'onceonly/sqlite'
import { sqliteStore } from 'onceonly/sqlite'
import type { Subject } from 'onceonly/testing'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'

/** Fresh stores for the kit, each with a second one on the same data. */

export async function memorySubject(keys: Keys = {}): Promise<Subject> {
  const store = memoryStore({ testClock: true, ...keys })
  return { store, close: () => store.stop() }
}

export async function sqliteSubject(options: Keys & Pick<SqliteStoreOptions, 'driver'> = {}): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-kit-'))
  const stores: Store[] = []
  const another = async () => {
    const store = sqliteStore(join(folder, 'kit.db'), { testClock: true, ...options })
    stores.push(store)
    return store
  }
  const close = async () => {
    for (const store of stores) await store.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { store: await another(), another, close }
}

/** A store that is encrypted, or none. */
export type Keys = { readonly encryption?: Encryption }

export interface PostgresPools {
  /** The connections of each pool. */
  readonly max?: number
  /** A pooler in front of the server. */
  readonly pooler?: string
}

/** One database for all cases, a schema of its own for each: making databases is slow. */
export async function postgresSubjects(
  adminUrl: string,
  { max = 12, pooler = adminUrl, keys = {} }: PostgresPools & { readonly keys?: Keys } = {},
): Promise<{ open(): Promise<Subject>; end(): Promise<void> }> {
  const database = await createDatabase(adminUrl)
  const url = new URL(new URL(database.url).pathname, pooler)
  let schemas = 0
  const open = async (): Promise<Subject> => {
    const schema = `kit_${++schemas}`
    const ends: (() => Promise<void>)[] = []
    const another = async () => {
      const pool = new Pool({ connectionString: url.href, max })
      const store = postgresStore(pool, { schema, testClock: true, ...keys })
      ends.push(async () => {
        await store.stop()
        await pool.end()
      })
      return store
    }
    const close = async () => {
      for (const end of ends) await end()
    }
    return { store: await another(), another, close }
  }
  return { open, end: () => database.drop() }
}

/** One server for all cases, a prefix of its own for each. */
export function redisSubjects(url: string, keys: Keys = {}): { open(): Promise<Subject>; end(): Promise<void> } {
  const client = new Redis(url)
  let prefixes = 0
  const open = async (): Promise<Subject> => {
    const prefix = `kit:${process.pid}:${++prefixes}`
    const stores: Store[] = []
    const another = async () => {
      const store = redisStore(client, { prefix, testClock: true, buckets: 4, ...keys })
      stores.push(store)
      return store
    }
    const close = async () => {
      for (const store of stores) await store.stop()
    }
    return { store: await another(), another, close }
  }
  return { open, end: async () => client.disconnect() }
}
