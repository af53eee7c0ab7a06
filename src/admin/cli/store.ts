import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isOnceError } from '../../ledger/core/errors.ts'
import { MINUTE } from '../../ledger/core/limits.ts'
import { encryptionFromEnv } from '../../ledger/store/encryption/env.ts'
import type { Encryption } from '../../ledger/store/encryption/options.ts'
import type { Store } from '../../ledger/store/port.ts'
import type { MariadbPool } from '../../ledger/stores/mariadb/index.ts'
import { mariadbStore } from '../../ledger/stores/mariadb/index.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import type { PgPool } from '../../ledger/stores/postgres/index.ts'
import { postgresStore } from '../../ledger/stores/postgres/index.ts'
import type { RedisClient } from '../../ledger/stores/redis/index.ts'
import { redisStore } from '../../ledger/stores/redis/index.ts'
import { sqliteStore } from '../../ledger/stores/sqlite/index.ts'
import { Usage } from './usage.ts'

export interface OpenedStore {
  readonly store: Store
  stop(): Promise<void>
}

/** Two batches, a listener, and a few for everything else. */
const POOL_CLIENTS = 8
/** A new client costs as much as many statements. After the 10 s of the driver an idle gateway would make one all the time. */
const IDLE_CLIENT_MS = 2 * MINUTE

/** A file, `postgres://…`, `mariadb://…`, `redis://…`, or `memory`, which forgets everything with the process. */
export async function openStore(given: string): Promise<OpenedStore> {
  if (given === 'memory') {
    const store = memoryStore()
    return { store, stop: () => store.stop() }
  }
  const keys = keysIn(process.env)
  if (/^postgres(ql)?:\/\//.test(given)) return openPostgres(given, keys)
  if (given.startsWith('mariadb://')) return openMariadb(given, keys)
  if (/^rediss?:\/\//.test(given)) return openRedis(given, keys)
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//.exec(given)?.[1]
  if (scheme !== undefined) {
    throw new Usage(
      `--store ${scheme}://… is no store that is known; give a file, postgres://…, mariadb://… or redis://….`,
    )
  }
  const store = sqliteStore(fileOf(given), keys)
  return { store, stop: () => store.stop() }
}

/** A store that must exist: a typing mistake must not create an empty one. */
export async function openExisting(given: string): Promise<OpenedStore> {
  const isFile = given !== 'memory' && !/^[a-z][a-z0-9+.-]+:\/\//.test(given)
  if (isFile && !existsSync(fileOf(given))) throw new Usage(`There is no store at ${fileOf(given)}.`)
  return openStore(given)
}

type Keys = { readonly encryption?: Encryption }

/** The variables that the server reads, too. */
function keysIn(env: NodeJS.ProcessEnv): Keys {
  try {
    const encryption = encryptionFromEnv(env)
    return encryption === undefined ? {} : { encryption }
  } catch (error) {
    throw isOnceError(error) ? new Usage(error.message) : error
  }
}

function fileOf(given: string): string {
  return resolve(given.replace(/^sqlite:/, ''))
}

interface PoolOptions {
  readonly connectionString: string
  readonly max: number
  readonly idleTimeoutMillis: number
}

interface PgModule {
  readonly Pool: new (options: PoolOptions) => PgPool & { end(): Promise<void> }
}

async function openPostgres(connectionString: string, keys: Keys): Promise<OpenedStore> {
  const { Pool } = await loadDriver<PgModule>('pg', 'postgres://')
  const pool = new Pool({ connectionString, max: POOL_CLIENTS, idleTimeoutMillis: IDLE_CLIENT_MS })
  const store = postgresStore(pool, keys)
  return {
    store,
    async stop() {
      await store.stop()
      await pool.end()
    },
  }
}

interface MariadbModule {
  readonly createPool: (url: string) => MariadbPool & { end(): Promise<void> }
}

async function openMariadb(given: string, keys: Keys): Promise<OpenedStore> {
  if (!URL.canParse(given)) throw new Usage('--store mariadb://… is not a URL.')
  const url = new URL(given)
  if (!url.searchParams.has('connectionLimit')) url.searchParams.set('connectionLimit', String(POOL_CLIENTS))
  const { createPool } = await loadDriver<MariadbModule>('mariadb', 'mariadb://')
  const pool = createPool(url.href)
  const store = mariadbStore(pool, keys)
  return {
    store,
    async stop() {
      await store.stop()
      await pool.end()
    },
  }
}

interface RedisModule {
  readonly Redis: new (url: string, options: { lazyConnect: boolean }) => RedisClient
}

async function openRedis(given: string, keys: Keys): Promise<OpenedStore> {
  if (!URL.canParse(given)) throw new Usage('--store redis://… is not a URL.')
  const url = new URL(given)
  // Ours, and nothing that the driver knows: several stores may share one database.
  const prefix = url.searchParams.get('prefix')
  url.searchParams.delete('prefix')
  const { Redis } = await loadDriver<RedisModule>('ioredis', 'redis://')
  const store = redisStore(new Redis(url.href, { lazyConnect: true }), {
    ...keys,
    ...(prefix === null ? {} : { prefix }),
    on: ({ what }) => console.error(`onceonly: Redis has lost records, it was ${what}.`),
  })
  return { store, stop: () => store.stop() }
}

/** The driver is yours: it is found from the folder that the command runs in. */
async function loadDriver<M>(name: string, scheme: string): Promise<M> {
  try {
    const path = createRequire(join(process.cwd(), 'package.json')).resolve(name)
    const loaded = (await import(pathToFileURL(path).href)) as { readonly default?: M } & M
    return loaded.default ?? loaded
  } catch (cause) {
    throw new Usage(`A ${scheme} store needs the package \`${name}\` in this folder: npm install ${name}.`, { cause })
  }
}
