import type { Fence } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Core } from './core.ts'
import { scriptOf } from './script.ts'
import { decodeRecord } from './value.ts'

/** An index by the end of leases leads straight to those that are past it. Strangers in the index are removed. */
const lapsedScript = scriptOf(
  'no',
  `
local due = whole(now - ${limits.leaseGraceMs})
for _, id in ipairs(redis.call('ZRANGEBYSCORE', OPEN, '-inf', due, 'LIMIT', 0, ARGV[4])) do
  local value = redis.call('GET', ARGV[5] .. id)
  if value and isOpen((headOf(value))) then answer({ id, value }) else redis.call('ZREM', OPEN, id) end
end
`,
)

/** There is no low-water mark to move, because nothing is walked over: it stays where it was. */
export async function readLapsed(
  core: Core,
  from: Fence,
  limit: number,
  deadline: Deadline,
): Promise<{ now: number; rows: LedgerRecord[]; next: Fence }> {
  const parts = await Promise.all(
    core.names.buckets.map((bucket) => core.run(lapsedScript, bucket, { args: [limit, bucket.record] }, deadline)),
  )
  const rows = parts
    .flatMap(({ answers }) => (answers as [string, string][]).map(([id, value]) => decodeRecord(id, value)))
    .filter(({ fence }) => fence >= from)
    .toSorted((a, b) => a.fence - b.fence)
  return { now: Math.max(...parts.map(({ now }) => now)), rows: rows.slice(0, limit), next: from }
}
