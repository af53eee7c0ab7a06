import { limits } from '../../core/limits.ts'
import type { BusyCaller } from '../../store/port.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import type { Bucket } from './names.ts'
import { scriptOf } from './script.ts'

/** Requests by caller, in buckets of time that Redis removes by itself. All of it lives in the first bucket of records. */

const addScript = scriptOf(
  'maybe',
  `
local key = ARGV[4] .. whole(now - now % ${limits.tallyBucketMs})
for field = 5, #ARGV, 2 do call('HINCRBY', key, ARGV[field], ARGV[field + 1]) end
call('PEXPIRE', key, ${limits.tallyKeepMs + limits.tallyBucketMs})
`,
)

/** A bucket of time counts when any part of it is recent enough. */
const busiestScript = scriptOf(
  'no',
  `
local width = ${limits.tallyBucketMs}
local start = math.max(tonumber(ARGV[5]), now - ${limits.tallyKeepMs})
for time = start - start % width, now, width do answers[#answers + 1] = call('HGETALL', ARGV[4] .. whole(time)) end
`,
)

const counted = ['claims', 'replays', 'conflicts', 'inProgress'] as const

export async function addCallers(core: Core, callers: readonly BusyCaller[], deadline: CallDeadline): Promise<void> {
  const bucket = core.names.buckets[0] as Bucket
  const fields = callers.flatMap((busy) => {
    const { tenant, caller, operation } = busy
    return counted.flatMap((what) => {
      return busy[what] === 0 ? [] : [JSON.stringify([what, tenant, caller, operation]), busy[what]]
    })
  })
  if (fields.length > 0) await core.run(addScript, bucket, { args: [bucket.callers, ...fields] }, deadline)
}

export async function readBusiest(
  core: Core,
  since: number,
  limit: number,
  deadline: CallDeadline,
): Promise<readonly BusyCaller[]> {
  const bucket = core.names.buckets[0] as Bucket
  const args = [bucket.callers, Math.floor(since)]
  const { answers } = await core.run(busiestScript, bucket, { args }, deadline)
  const sums = new Map<string, BusyCaller>()
  for (const fields of answers as string[][]) {
    for (let at = 0; at < fields.length; at += 2) add(sums, fields[at] ?? '', Number(fields[at + 1]))
  }
  return [...sums.values()].toSorted((a, b) => totalOf(b) - totalOf(a)).slice(0, limit)
}

function add(sums: Map<string, BusyCaller>, field: string, count: number): void {
  const [what, ...who] = JSON.parse(field) as [(typeof counted)[number], string, string, string]
  const [tenant, caller, operation] = who
  const name = JSON.stringify(who)
  const sum = sums.get(name) ?? { tenant, caller, operation, claims: 0, replays: 0, conflicts: 0, inProgress: 0 }
  sums.set(name, { ...sum, [what]: sum[what] + count })
}

function totalOf({ claims, replays, conflicts, inProgress }: BusyCaller): number {
  return claims + replays + conflicts + inProgress
}
