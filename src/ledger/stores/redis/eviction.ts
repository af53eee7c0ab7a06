import { OnceError } from '../../core/errors.ts'
import type { CallDeadline, Connection } from './connection.ts'
import { infoOf, KEEPS } from './info.ts'
import type { Names } from './names.ts'

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
  const infos = await Promise.all(
    buckets.map((bucket) =>
      // A server that does not show its settings is not refused: `doctor` says so.
      infoOf(connection, bucket, deadline).catch((error: unknown) =>
        isForbidden(error) ? null : Promise.reject(error),
      ),
    ),
  )
  const policies = infos.map((info) => info?.get('maxmemory_policy') ?? KEEPS)
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
