import { createHash } from 'node:crypto'
import type { CallDeadline, Connection } from './connection.ts'
import type { Bucket } from './names.ts'
import type { Script } from './script.ts'

/** What a server says about itself, by the names of its fields. */
export type Info = ReadonlyMap<string, string>

/** The only policy under which Redis refuses new writes instead of removing old records. */
export const KEEPS = 'noeviction'

/** In a script, because its key leads to the node that holds the bucket. It writes nothing, and makes no bucket. */
const lua = `return redis.call('INFO', 'everything')`
const script: Script = {
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
  whenLost: 'no',
  sharedKeys: ({ meta }) => [meta],
}

/** What the server says that holds a bucket: in a cluster each has settings of its own. */
export async function infoOf(connection: Connection, { meta }: Bucket, deadline: CallDeadline): Promise<Info> {
  return fieldsOf(String(await connection.run(script, [script.sha, '1', meta], deadline)))
}

function fieldsOf(info: string): Info {
  const pairs = info.split('\r\n').map((line) => line.split(':', 2) as [string, string | undefined])
  return new Map(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
}
