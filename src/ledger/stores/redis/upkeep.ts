import { ID_HEX_DIGITS } from '../../core/identity.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Tally, Upkeep } from '../../store/port.ts'
import { addCallers } from './callers.ts'
import type { Core } from './core.ts'
import { scriptOf } from './script.ts'

/** Records of one step: a script blocks all other commands, some milliseconds with so many. */
const STEP_ROWS = 1_000
/** Places of the index that are taken out of it at once: each may hold a whole pack of ids. */
const PLACES = 16

/**
 * One step of the sweep in one bucket, along the index of ends. Past its end nothing of a record is kept; past replay only the
 * fact that the key was used. A place holds the ids of one end, written one after the other. It is not cleared when one of
 * them begins a new life, so each record itself decides whether it ends now.
 */
const sweepScript = scriptOf(
  'maybe',
  `
local left, removed = tonumber(ARGV[4]), 0

local function sweep(id)
  local key = ARGV[5] .. id
  local value = redis.call('GET', key)
  local state, _, _, _, expiresAt, goneAt
  if value then state, _, _, _, expiresAt, goneAt = headOf(value) end
  if not value or (goneAt ~= '-' and tonumber(goneAt) <= now) then
    removed = removed + redis.call('DEL', key)
    for _, index in ipairs({ FENCES, OPEN, UNKNOWNS, ENDS }) do redis.call('ZREM', index, id) end
    redis.call('HDEL', COUNTS, id)
  elseif goneAt ~= '-' and tonumber(nextEnd(state, expiresAt, goneAt)) <= now then
    write(key, string.match(value, '^[^\\n]*\\n[^\\n]*\\n') .. '\\n\\n', goneAt)
    redis.call('ZADD', ENDS, goneAt, id)
  end
end

repeat
  local due = redis.call('ZRANGEBYSCORE', ENDS, '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, ${PLACES})
  for place = 1, #due, 2 do
    local ids, most = due[place], left * ${ID_HEX_DIGITS}
    -- Before its records, one of which may get the same place again, for later.
    redis.call('ZREM', ENDS, ids)
    -- The rest is for the next step. Where it has a later place, that one counts.
    if #ids > most then redis.call('ZADD', ENDS, 'NX', due[place + 1], string.sub(ids, most + 1)) end
    for from = 1, math.min(#ids, most), ${ID_HEX_DIGITS} do
      sweep(string.sub(ids, from, from + ${ID_HEX_DIGITS - 1}))
      left = left - 1
    end
  end
until #due == 0 or left == 0
answer(tonumber(ARGV[4]) - left)
answer(removed)
`,
)

const tallyScript = scriptOf(
  'maybe',
  `
for field = 5, #ARGV, 5 do
  local id = ARGV[field]
  local value = redis.call('GET', ARGV[4] .. id)
  if value then
    local _, _, _, incarnation = headOf(value)
    local counted = redis.call('HGET', COUNTS, id) or ''
    local life, replays, conflicts, running, last = string.match(counted, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    -- A new incarnation is a new record to those who count.
    if life ~= incarnation then replays, conflicts, running, last = 0, 0, 0, 0 end
    local sums = whole(replays + ARGV[field + 1]) .. ' ' .. whole(conflicts + ARGV[field + 2])
      .. ' ' .. whole(running + ARGV[field + 3])
    local repeatedAt = whole(math.max(tonumber(last), now - tonumber(ARGV[field + 4])))
    redis.call('HSET', COUNTS, id, incarnation .. ' ' .. sums .. ' ' .. repeatedAt)
  end
end
`,
)

export function createUpkeep(core: Core): Upkeep {
  return {
    sweep: (cursor, limit, call) =>
      core.call(call, async (deadline) => {
        const rows = Math.min(limit, STEP_ROWS)
        let left = rows
        let removed = 0
        for (const bucket of core.names.buckets.slice(cursor === null ? 0 : Number(cursor))) {
          const reply = await core.run(sweepScript, bucket, { args: [left, bucket.record] }, deadline)
          const [looked, gone] = reply.answers as [number, number]
          removed += gone
          left -= looked
          if (left <= 0) return { cursor: String(bucket.number), looked: rows, removed }
        }
        return { cursor: null, looked: rows - left, removed }
      }),
    tally: ({ records, callers }, call) =>
      core.call(call, async (deadline) => {
        await countOnRecords(core, records, deadline)
        if (callers.length > 0) await addCallers(core, callers, deadline)
      }),
  }
}

async function countOnRecords(core: Core, records: Tally['records'], deadline: Deadline): Promise<void> {
  const byBucket = Map.groupBy(records, ({ id }) => core.names.bucketOf(id))
  await Promise.all(
    [...byBucket].map(([bucket, rows]) => {
      const counts = rows.flatMap(({ id, replays, conflicts, inProgress, lastAgoMs }) => {
        return [id, replays, conflicts, inProgress, Math.floor(lastAgoMs)]
      })
      return core.run(tallyScript, bucket, { args: [bucket.record, ...counts] }, deadline)
    }),
  )
}
