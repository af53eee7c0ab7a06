import type { Redis } from 'ioredis'
import type { Slices } from '../harness/load.ts'
import { mustEqual } from '../harness/program.ts'
import type { RedisPlace } from '../harness/redis.ts'

export interface RedisTask extends RedisPlace {
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly slices?: Slices
  /** A side that measures alone shares the server with the other one. */
  readonly prefix: string
}

/** Compiles the code of both sides before one caller is measured alone. */
export const WARM_UP = { warmUpRequests: 5_000, warmUpCallers: 64 }

/** Every request is there, and the server appends to its file. */
export async function mustHold(client: Redis, pattern: string, records: number): Promise<void> {
  let found = 0
  for await (const keys of client.scanStream({ match: pattern, count: 1_000 })) found += (keys as string[]).length
  mustEqual('records', found, records)
  mustEqual('appendonly', /aof_enabled:(\d)/.exec(await client.info('persistence'))?.[1], '1')
}
