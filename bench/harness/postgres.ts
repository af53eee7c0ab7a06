import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import pg from 'pg'
import { createDatabase } from '../../tools/servers/database.ts'
import { startServers } from '../../tools/servers/index.ts'
import type { Bench } from './bench.ts'
import { createCpuMeter } from './process-cpu.ts'

/** What a side needs to reach its own, empty database. */
export interface PostgresPlace {
  readonly url: string
  /** The server's first process, if this process started it: then its CPU time can be read. */
  readonly serverPid: number | null
}

export interface PostgresServer {
  /** An empty database, after a checkpoint: each side begins with the same log to write. */
  withDatabase<T>(work: (place: PostgresPlace) => Promise<T>): Promise<T>
  checkpoint(): Promise<void>
}

/** As many as both sides get. */
export const POOL_CLIENTS = 20

/** Finds or starts a server for the time of the work, and says how durable it is. */
export async function withPostgres(bench: Bench, work: (server: PostgresServer) => Promise<void>): Promise<void> {
  await using servers = await startServers(['postgres'], { log: bench.progress })
  const adminUrl = servers.env['ONCEONLY_TEST_POSTGRES_URL']
  if (adminUrl === undefined) throw new Error('There is no PostgreSQL server.')
  const serverPid = servers.started.find(({ kind }) => kind === 'postgres')?.pid ?? null
  bench.note(await describe(adminUrl))
  const checkpoint = async () => void (await ask(adminUrl, 'CHECKPOINT'))
  await work({
    checkpoint,
    withDatabase: async (use) => {
      await using database = await createDatabase(adminUrl)
      await checkpoint()
      return await use({ url: database.url, serverPid })
    },
  })
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const SETTINGS = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers'] as const

async function describe(url: string): Promise<string> {
  const shown = SETTINGS.map((name) => `current_setting('${name}') AS ${name}`).join(', ')
  const [row = {}] = await ask(url, `SELECT ${shown}`)
  const [version, ...others] = SETTINGS
  const file = createRequire(import.meta.url).resolve('pg/package.json')
  const driver = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
  return `PostgreSQL ${row[version]} (${others.map((name) => `${name} ${row[name]}`).join(', ')}), pg ${driver}`
}

export function createPool({ url }: PostgresPlace): pg.Pool {
  return new pg.Pool({ connectionString: url, max: POOL_CLIENTS })
}

export function serverCpu({ serverPid }: PostgresPlace): (() => number) | undefined {
  return serverPid === null ? undefined : createCpuMeter(serverPid)
}
