import type { Fence } from '../../core/identity.ts'
import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import type { Bucket } from './names.ts'
import { indexScriptOf, SHARED_ANSWERS } from './script.ts'
import { decodeRecord } from './value.ts'

/** Records of one step: a script blocks all other commands, one or two milliseconds with so many. */
const STEP_ROWS = 1_000
/** Places that are read at once: each may hold a whole pack of ids. */
const PLACES = 16
/** Of the caller's time: a search that has much to look at is continued by the next call. */
const SEARCH_SHARE = 1 / 2

/**
 * Finds leases that ended without a settle. No claim and no settle writes an index for it. Instead every fence is looked at
 * once, by the first search after it was given, and what is in progress then is remembered by the end of its lease. What is
 * found there when that time has come is past its end, or was renewed and is remembered by its new end, or is forgotten.
 * Answers first whether there is more to look at.
 */
const lapsedScript = indexScriptOf(
  'no',
  `
local left, opened, before = ${STEP_ROWS}, {}, seen
repeat
  local places = call('ZRANGEBYSCORE', FENCES, '(' .. seen, '+inf', 'WITHSCORES', 'LIMIT', 0, ${PLACES})
  for place = 1, #places, 2 do
    local ids = places[place]
    for first = 1, #ids, ID_DIGITS do
      local id = sub(ids, first, first + ID_DIGITS - 1)
      local head = headOf(ARGV[5] .. id)
      local state, _, dueAt
      if head then state, _, dueAt = partsOf(head) end
      if isOpen(state) then
        opened[#opened + 1] = dueAt
        opened[#opened + 1] = id
      end
      left = left - 1
    end
    seen = places[place + 1]
    if left <= 0 then break end
  end
until #places == 0 or left <= 0
if #opened > 0 then call('ZADD', OPEN, unpack(opened)) end
if seen ~= before then call('SET', META, metaText()) end
answer(left <= 0 and 1 or 0)

local due, most = now - ${limits.leaseGraceMs}, tonumber(ARGV[4])
local ended = call('ZRANGEBYSCORE', OPEN, '-inf', whole(due), 'LIMIT', 0, most)
for _, id in ipairs(ended) do
  local head = headOf(ARGV[5] .. id)
  local state, _, dueAt
  if head then state, _, dueAt = partsOf(head) end
  if isOpen(state) and tonumber(dueAt) <= due then
    -- It stays until it has changed.
    answer({ id, call('GET', ARGV[5] .. id) })
  else
    if isOpen(state) then call('ZADD', OPEN, dueAt, id) else call('ZREM', OPEN, id) end
    if #ended == most then answers[${SHARED_ANSWERS} + 1] = 1 end
  end
end
`,
)

type Row = [id: string, value: string]

/** What is new since the last search is looked at in steps, so that other commands pass in between. */
async function searchIn(
  core: Core,
  bucket: Bucket,
  most: number,
  deadline: CallDeadline,
): Promise<{ now: number; rows: Row[] }> {
  const untilMs = deadline.endsAtMs - deadline.timeoutMs * (1 - SEARCH_SHARE)
  for (;;) {
    const { now, answers } = await core.run(lapsedScript, bucket, { args: [most, bucket.record] }, deadline)
    const [more, ...rows] = answers as [number, ...Row[]]
    if (more === 0 || performance.now() >= untilMs) return { now, rows }
  }
}

/** There is no low-water mark to move: the store itself knows which fences were looked at. */
export async function readLapsed(
  core: Core,
  from: Fence,
  most: number,
  deadline: CallDeadline,
): Promise<{ now: number; rows: LedgerRecord[]; next: Fence }> {
  const parts = await Promise.all(core.names.buckets.map((bucket) => searchIn(core, bucket, most, deadline)))
  const rows = parts
    .flatMap((part) => part.rows.map(([id, value]) => decodeRecord(id, value)))
    .filter(({ fence }) => fence >= from)
    .toSorted((a, b) => a.fence - b.fence)
  return { now: Math.max(...parts.map(({ now }) => now)), rows: rows.slice(0, most), next: from }
}
