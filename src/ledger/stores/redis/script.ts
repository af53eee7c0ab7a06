import { createHash } from 'node:crypto'
import type { AppliedWord } from '../../core/errors.ts'
import { MINUTE } from '../../core/limits.ts'
import { stateCode } from '../../store/row.ts'
import type { Bucket } from './names.ts'
import { BUCKETS_MOST } from './names.ts'

/** A program that Redis runs alone, from beginning to end: nothing happens between two of its steps. */
export interface Script {
  readonly lua: string
  readonly sha: string
  /** What a lost answer means. */
  readonly whenLost: AppliedWord
}

/** The keys that every script gets first, and the values. What follows is its own. */
export function sharedKeys(bucket: Bucket): string[] {
  return [bucket.meta, bucket.fences, bucket.open, bucket.unknowns, bucket.ends, bucket.counts]
}

const SHARED_KEYS = 6

/**
 * What every script answers first: the time, the epoch, the next fence, the largest fence before and after it, and how
 * often fences were given before and after it.
 */
export const SHARED_ANSWERS = 7

/**
 * Past its end a record is removed by the sweep, which also takes it out of the indexes. Without a sweep for this long,
 * Redis itself frees the memory of the record.
 */
const EXPIRY_SLACK_MS = 5 * MINUTE

/**
 * Time is the server's, plus the offset of the test clock. A fence is larger than all before it and than the time in
 * microseconds, so that it grows even over a loss of all data; its remainder is the number of the bucket, so that two
 * buckets never give the same one.
 */
const PRELUDE = `
local META, FENCES, OPEN, UNKNOWNS, ENDS, COUNTS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local SHARED_KEYS = ${SHARED_KEYS}
local FIRST_KEY = SHARED_KEYS + 1
local FENCE_STEP = ${BUCKETS_MOST}
local stamp = redis.call('TIME')
local known = redis.call('HMGET', META, 'fence', 'offset', 'epoch', 'turns')
local micros = tonumber(stamp[1]) * 1000000 + tonumber(stamp[2])
local offset = tonumber(known[2] or 0)
local now = math.floor(micros / 1000) + offset
local last = tonumber(known[1] or 0)
local epoch = known[3]
local turns = tonumber(known[4] or 0)
if not epoch then
  epoch = ARGV[1]
  redis.call('HSET', META, 'epoch', epoch)
end
local nextFence = math.max(last, micros)
nextFence = nextFence - nextFence % FENCE_STEP + FENCE_STEP + tonumber(ARGV[2])
local answers = { now, epoch, nextFence, last, last, turns, turns }
local at = 4

-- Lua would write large numbers with an exponent.
local function whole(number) return string.format('%d', number) end

-- Keeps the largest fence, for those who come next.
local function took(fence)
  last = math.max(last, fence)
  turns = turns + 1
  redis.call('HSET', META, 'fence', whole(last), 'turns', whole(turns))
  answers[5] = last
  answers[7] = turns
end

local function answer(value) answers[#answers + 1] = value end

-- A record with an end also gets one from Redis, in real time.
local function write(key, value, goneAt)
  local goneMs = goneAt and tonumber(goneAt)
  if goneMs and goneMs < 1e14 then
    redis.call('SET', key, value, 'PXAT', whole(goneMs - offset + ${EXPIRY_SLACK_MS}))
  else
    redis.call('SET', key, value)
  end
end

-- The head of a record, as value.ts writes it.
local function headOf(value)
  local state, fence, dueAt, incarnation, expiresAt, goneAt =
    string.match(value, '^1 (%d) (%d+) %S+ %d (%S+) (%d+) %d+ %d+ %S+ (%S+) (%S+) ')
  return tonumber(state), fence, dueAt, incarnation, expiresAt, goneAt
end

-- When the sweep has something to do: the outcome may go when it is not replayed any more, the record at its end.
local function nextEnd(state, expiresAt, goneAt)
  if state == ${stateCode.succeeded} or state == ${stateCode.failed_terminal} then return expiresAt end
  return goneAt
end

local function isOpen(state) return state == ${stateCode.reserved} or state == ${stateCode.running} end
`

/** What a script does with the shared part before it. It ends with the answers. */
export function scriptOf(whenLost: AppliedWord, lua: string): Script {
  const whole = `${PRELUDE}\n${lua}\nreturn answers`
  return { lua: whole, sha: createHash('sha1').update(whole).digest('hex'), whenLost }
}
