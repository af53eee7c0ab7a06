import { OnceError } from '../../core/errors.ts'
import type { Swept, Tally, Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { addCallers } from './callers.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import { indexScriptOf } from './script.ts'

/** Records of one script: it blocks all other commands, one or two milliseconds with so many. */
const STEP_ROWS = 1_000
/** Places of the index that are read at once: each may hold a whole pack of ids. */
const PLACES = 16

/**
 * One step of the sweep in one bucket, along the fences from a place and an id in it on. Past its end nothing of a record is
 * kept; past replay only the fact that the key was used. A place goes when none of its records stands there any more: each
 * was removed, or has another fence by now. Answers how many records it looked at, how many it removed, and where to
 * continue.
 */
const sweepScript = indexScriptOf(
  'maybe',
  `
local left, looked, gone, missing = tonumber(ARGV[4]), 0, {}, {}
local from, skipped = ARGV[6], tonumber(ARGV[7])

local function keyOf(id) return ARGV[5] .. id end

-- Whether the record stands in this place, after what the sweep had to do with it.
local function stays(id, fence)
  local head = headOf(keyOf(id))
  if not head then
    missing[#missing + 1] = id
    return false
  end
  local state, current, _, expiresAt, goneAt = partsOf(head)
  if current ~= fence then return false end
  looked = looked + 1
  if goneAt == '-' then return true end
  if tonumber(goneAt) <= now then
    gone[#gone + 1] = id
    return false
  end
  local isFinal = state == ${stateCode.succeeded} or state == ${stateCode.failed_terminal}
  if isFinal and tonumber(expiresAt) <= now then
    local value = call('GET', keyOf(id))
    local emptied = match(value, '^[^\\n]*\\n[^\\n]*\\n') .. '\\n\\n'
    if value ~= emptied then write(keyOf(id), emptied, expiryOf(goneAt)) end
  end
  return true
end

-- Whether a record before the one where this step began still stands in the place.
local function isHeld(ids, score, before)
  for n = 0, before - 1 do
    local head = headOf(keyOf(sub(ids, n * ID_DIGITS + 1, (n + 1) * ID_DIGITS)))
    if head and select(2, partsOf(head)) == score + n * FENCE_STEP then return true end
  end
  return false
end

local function sweep(ids, score, first)
  local held = isHeld(ids, score, first)
  for n = first, #ids / ID_DIGITS - 1 do
    if left == 0 then return n end
    left = left - 1
    if stays(sub(ids, n * ID_DIGITS + 1, (n + 1) * ID_DIGITS), score + n * FENCE_STEP) then held = true end
  end
  if not held then call('ZREM', FENCES, ids) end
  return 0
end

local isEnd = false
while left > 0 and not isEnd do
  local places = call('ZRANGEBYSCORE', FENCES, from, '+inf', 'WITHSCORES', 'LIMIT', 0, ${PLACES})
  isEnd = #places == 0
  for place = 1, #places, 2 do
    local score = places[place + 1]
    local stoppedAt = sweep(places[place], score, score == from and skipped or 0)
    if left == 0 then
      from = stoppedAt > 0 and score or '(' .. score
      skipped = stoppedAt
      break
    end
    from = '(' .. score
  end
end
local removed = 0
if #gone > 0 then
  local keys = {}
  for n, id in ipairs(gone) do keys[n] = keyOf(id) end
  removed = call('DEL', unpack(keys))
  call('HDEL', COUNTS, unpack(gone))
end
if #missing > 0 then
  call('HDEL', COUNTS, unpack(missing))
  call('ZREM', UNKNOWNS, unpack(missing))
end
answer(looked)
answer(removed)
answer(tonumber(ARGV[4]) - left)
answer(isEnd and '' or from)
answer(skipped)
`,
)

const tallyScript = indexScriptOf(
  'maybe',
  `
for field = 5, #ARGV, 5 do
  local id = ARGV[field]
  local head = headOf(ARGV[4] .. id)
  if head then
    local incarnation = match(head, '\\n(%d+) ')
    local counted = call('HGET', COUNTS, id) or ''
    local life, replays, conflicts, running, last = match(counted, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    -- A new incarnation is a new record where repeats are counted.
    if life ~= incarnation then replays, conflicts, running, last = 0, 0, 0, 0 end
    local sums = whole(replays + ARGV[field + 1]) .. ' ' .. whole(conflicts + ARGV[field + 2])
      .. ' ' .. whole(running + ARGV[field + 3])
    local repeatedAt = whole(math.max(tonumber(last), now - tonumber(ARGV[field + 4])))
    call('HSET', COUNTS, id, incarnation .. ' ' .. sums .. ' ' .. repeatedAt)
  end
end
`,
)

export function createUpkeep(core: Core): Upkeep {
  return {
    sweep: (cursor, rows, call) => core.call(call, (deadline) => sweepFrom(core, cursor, rows, deadline)),
    tally: ({ records, callers }, call) =>
      core.call(call, async (deadline) => {
        await countOnRecords(core, records, deadline)
        if (callers.length > 0) await addCallers(core, callers, deadline)
      }),
  }
}

/** Where a step continues: the bucket, the place in its index, and how many ids of that place were looked at. */
const BEGINNING = ['0', '-inf', '0']
const CURSOR = /^(\d{1,2}) (\(?[\d.e+]+|-inf) (\d+)$/

async function sweepFrom(core: Core, cursor: string | null, rows: number, deadline: CallDeadline): Promise<Swept> {
  const from = cursor === null ? BEGINNING : CURSOR.exec(cursor)?.slice(1)
  if (from === undefined) throw new OnceError('bad_option', 'The cursor is not one of this sweep.')
  const [first, ...within] = from
  let [place = '-inf', skipped = '0'] = within
  let left = rows
  let looked = 0
  let removed = 0
  for (const bucket of core.names.buckets.slice(Number(first))) {
    do {
      const args = [Math.min(left, STEP_ROWS), bucket.record, place, skipped]
      const { answers } = await core.run(sweepScript, bucket, { args }, deadline)
      const [seen, gone, steps, next, skip] = answers as [number, number, number, string, number]
      looked += seen
      removed += gone
      left -= steps
      if (next !== '' && left === 0) return { cursor: `${bucket.number} ${next} ${skip}`, looked, removed }
      place = next
      skipped = String(skip)
    } while (place !== '')
    place = '-inf'
    skipped = '0'
  }
  return { cursor: null, looked, removed }
}

async function countOnRecords(core: Core, records: Tally['records'], deadline: CallDeadline): Promise<void> {
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
