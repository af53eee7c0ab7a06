import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Store } from '../store/port.ts'
import { createMemoryStore } from '../stores/memory/index.ts'
import type { PgPool } from '../stores/postgres/index.ts'
import { createPostgresStore } from '../stores/postgres/index.ts'
import { createSqliteStore } from '../stores/sqlite/index.ts'
import { Usage } from './usage.ts'

export interface OpenedStore {
  readonly store: Store
  stop(): Promise<void>
}

/** Two batches, a listener, and a few for everything else. */
const POOL_CLIENTS = 8

/** A file, `postgres://…`, or `memory`, which forgets everything with the process. */
export async function openStore(given: string): Promise<OpenedStore> {
  if (given === 'memory') {
    const store = createMemoryStore()
    return { store, stop: () => store.stop() }
  }
  if (/^postgres(ql)?:\/\//.test(given)) return openPostgres(given)
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//.exec(given)?.[1]
  if (scheme !== undefined)
    throw new Usage(`--store ${scheme}://… is no store that is known; give a file or postgres://….`)
  const store = createSqliteStore({ path: resolve(given.replace(/^sqlite:/, '')) })
  return { store, stop: () => store.stop() }
}

interface PgModule {
  readonly Pool: new (options: { connectionString: string; max: number }) => PgPool & { end(): Promise<void> }
}

/** The driver is yours: it is found from the folder that the command runs in. */
async function openPostgres(connectionString: string): Promise<OpenedStore> {
  const { Pool } = await loadPg()
  const pool = new Pool({ connectionString, max: POOL_CLIENTS })
  const store = createPostgresStore({ pool })
  return {
    store,
    async stop() {
      await store.stop()
      await pool.end()
    },
  }
}

async function loadPg(): Promise<PgModule> {
  try {
    const path = createRequire(join(process.cwd(), 'package.json')).resolve('pg')
    const loaded = (await import(pathToFileURL(path).href)) as { readonly default?: PgModule } & PgModule
    return loaded.default ?? loaded
  } catch (cause) {
    throw new Usage('A postgres:// store needs the package `pg` in this folder: npm install pg.', { cause })
  }
}
