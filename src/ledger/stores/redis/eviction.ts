import { createHash } from 'node:crypto'
import { OnceError } from '../../core/errors.ts'
import type { CallDeadline, Connection } from './connection.ts'
import { fieldsOf, KEEPS } from './info.ts'
import type { Names } from './names.ts'
import type { Script } from './script.ts'

/** In a script, because its key leads to the node that holds the bucket. It writes nothing, and makes no bucket. */
const lua = `return redis.call('INFO', 'memory')`
const script: Script = {
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
  whenLost: 'no',
  sharedKeys: ({ meta }) => [meta],
}

/**
 * Every policy but one removes records, which have an expiry, as soon as memory is full: their effects would run again without a
 * sign of it. So a store refuses such a server before it writes anything.
 *
 * @throws OnceError `bad_option`
 */
export async function refuseEviction(
  connection: Connection,
  { buckets }: Names,
  deadline: CallDeadline,
): Promise<void> {
  const policies = await Promise.all(
    buckets.map(async (bucket) => {
      // A server that does not show its settings is not refused: `doctor` says so.
      const info = await connection
        .run(script, [script.sha, '1', bucket.meta], deadline)
        .catch((error: unknown) => (isForbidden(error) ? '' : Promise.reject(error)))
      return fieldsOf(String(info)).get('maxmemory_policy') ?? KEEPS
    }),
  )
  const evicting = policies.find((policy) => policy !== KEEPS)
  if (evicting === undefined) return
  const text = `\`maxmemory-policy\` of this Redis is \`${evicting}\`: it removes records when its memory is full, and their effects run again.`
  throw new OnceError('bad_option', `${text} Set \`maxmemory-policy ${KEEPS}\`, or pass \`allowEviction: true\`.`)
}

/** The server answered, and does not let this user ask. */
function isForbidden(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error && /\b(NOPERM|ERR|ACL)\b/.test(cause.message)
}
