import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { startServers } from '../../tools/servers/index.ts'
import type { Bench } from './bench.ts'

/** What a side needs to reach an empty server. */
export interface RedisPlace {
  readonly url: string
  readonly serverPid: number
}

export type Fsync = 'always' | 'everysec'

export interface RedisServer {
  /** Emptied, and as durable as asked for. */
  withEmpty<T>(fsync: Fsync, work: (place: RedisPlace) => Promise<T>): Promise<T>
}

/** Starts a server for the time of the work. It is emptied again and again, so it must be our own. */
export async function withRedis(bench: Bench, work: (server: RedisServer) => Promise<void>): Promise<void> {
  await using servers = await startServers(['redis'], { log: bench.progress })
  const started = servers.started.find(({ kind }) => kind === 'redis')
  if (started === undefined) throw new Error('This benchmark empties its server, so it takes only one of its own.')
  const admin = new Redis(started.url)
  try {
    bench.note(await describe(admin))
    await work({
      withEmpty: async (fsync, use) => {
        await admin.flushall()
        await admin.config('SET', 'appendfsync', fsync)
        return await use({ url: started.url, serverPid: started.pid })
      },
    })
  } finally {
    admin.disconnect()
  }
}

async function describe(admin: Redis): Promise<string> {
  const version = /redis_version:(\S+)/.exec(await admin.info('server'))?.[1]
  const file = createRequire(import.meta.url).resolve('ioredis/package.json')
  const driver = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
  return `Redis ${version} (appendonly yes), ioredis ${driver}`
}
