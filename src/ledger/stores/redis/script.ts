import { createHash } from 'node:crypto'
import type { AppliedWord } from '../../core/errors.ts'
import { ID_HEX_DIGITS } from '../../core/identity.ts'
import { MINUTE } from '../../core/limits.ts'
import { stateCode } from '../../store/row.ts'
import type { Bucket } from './names.ts'
import { BUCKETS_MOST } from './names.ts'
import { FORMAT } from './value.ts'

/** A program that Redis runs alone, from beginning to end: nothing happens between two of its steps. */
export interface Script {
  readonly lua: string
  readonly sha: string
  /** What a lost answer means. */
  readonly whenLost: AppliedWord
  /** The keys of the bucket that it gets first. What follows is its own. */
  sharedKeys(bucket: Bucket): readonly string[]
}

/**
 * What every script answers first: the time, the epoch, the next fence, the largest fence and how often fences were given
 * before it, and both after it.
 */
export const SHARED_ANSWERS = 7

/** The arguments that every script gets first: the number of its bucket, of how many, and where to publish. */
const SHARED_ARGUMENTS = 3

/**
 * Past its end a record is removed by the sweep, which also takes it out of the indexes. Without a sweep for this long,
 * Redis itself frees the memory of the record.
 */
export const EXPIRY_SLACK_MS = 5 * MINUTE

/** Begins the epoch of every bucket, so that no process mistakes the keys of another layout for its own. */
export const LAYOUT = 'layout-2'

/**
 * Time is the server's, plus the offset of the test clock. A fence is larger than all before it and than the time in
 * microseconds, so that it grows even over a loss of all data; its remainder is the number of the bucket, so that two
 * buckets never give the same one.
 */
const PRELUDE = `
local META, FENCES = KEYS[1], KEYS[2]
local FENCE_STEP, ID_DIGITS = ${BUCKETS_MOST}, ${ID_HEX_DIGITS}
local call, format, sub, match = redis.call, string.format, string.sub, string.match
local stamp = call('TIME')
READ
local micros = stamp[1] * 1000000 + stamp[2]
local epoch, last, turns, offset, seen
if found[1] then
  epoch, last, turns, offset, seen = match(found[1], '^(%S+) (%d+) (%d+) (%d+) (%S+)$')
  last, turns, offset = tonumber(last), tonumber(turns), tonumber(offset)
else
  -- Never the name of the life before, which began at another time.
  epoch = '${LAYOUT}:' .. ARGV[2] .. ':' .. format('%d', micros)
  last, turns, offset, seen = 0, 0, 0, '0'
end
local now = (micros - micros % 1000) / 1000 + offset
local nextFence = math.max(last, micros)
nextFence = nextFence - nextFence % FENCE_STEP + FENCE_STEP + ARGV[1]
local answers = { now, epoch, nextFence, last, turns, last, turns }
local at = ${SHARED_ARGUMENTS + 1}

local meta = '%s %d %d %d %s'
if not found[1] then call('SET', META, format(meta, epoch, last, turns, offset, seen)) end
`

/** Functions that most scripts use. The script of every request does without, because each call would make them again. */
const HELPERS = `
-- Lua would write large numbers with an exponent.
local function whole(number) return format('%d', number) end

local function metaText() return format(meta, epoch, last, turns, offset, seen) end

-- Keeps the largest fence, for all that are given later. The result has to be written.
local function took(fence)
  last = math.max(last, fence)
  turns = turns + 1
  answers[6] = last
  answers[7] = turns
  return metaText()
end

-- A record with an end also gets one from Redis, in real time: the last argument of its SET, or nothing.
local function expiryOf(goneAt)
  local goneMs = goneAt and tonumber(goneAt)
  if goneMs and goneMs < 1e14 then return whole(goneMs - offset + ${EXPIRY_SLACK_MS}) end
end

local function write(key, value, expiry)
  if expiry then call('SET', key, value, 'PXAT', expiry) else call('SET', key, value) end
end
`

const READ_META = `local found = { call('GET', META) }`
const READ_ALL = `local found = call('MGET', META, unpack(KEYS, 3))`

const prelude = (read: string): string => PRELUDE.replace('READ', read)

/** For the scripts that do more than a request needs. */
const INDEXES = `
local OPEN, UNKNOWNS, COUNTS = KEYS[3], KEYS[4], KEYS[5]
local FIRST_KEY = 6

local function answer(value) answers[#answers + 1] = value end

-- The head of a record, as value.ts writes it.
local function partsOf(value)
  local fence, state, dueAt, expiresAt, goneAt =
    match(value, '^${FORMAT} (%d+) %S+ (%d) %d (%S+) %S+ (%S+) (%S+) ')
  return tonumber(state), tonumber(fence), dueAt, expiresAt, goneAt
end

-- Enough of a record for its head, without its outcome, which may be large; nil where there is no record.
local function headOf(key)
  local head = call('GETRANGE', key, 0, 255)
  if head == '' then return nil end
  if string.find(head, '\\n%d+ ') then return head end
  return call('GET', key)
end

local function isOpen(state) return state == ${stateCode.reserved} or state == ${stateCode.running} end
`

/** A script that needs no more than the records and their index. It ends with the answers. */
export function scriptOf(whenLost: AppliedWord, lua: string): Script {
  return finished(whenLost, prelude(READ_META) + HELPERS + lua, ({ meta, fences }) => [meta, fences])
}

/** The same for a script that reads records: all of them at once, into `found`, behind what is shared. */
export function recordScriptOf(whenLost: AppliedWord, lua: string): Script {
  return finished(whenLost, prelude(READ_ALL) + lua, ({ meta, fences }) => [meta, fences])
}

/** A script that also uses the other indexes. */
export function indexScriptOf(whenLost: AppliedWord, lua: string): Script {
  const keys = ({ meta, fences, open, unknowns, counts }: Bucket) => [meta, fences, open, unknowns, counts]
  return finished(whenLost, prelude(READ_META) + HELPERS + INDEXES + lua, keys)
}

function finished(whenLost: AppliedWord, body: string, sharedKeys: Script['sharedKeys']): Script {
  const lua = `${body}\nreturn answers`
  return { lua, sha: createHash('sha1').update(lua).digest('hex'), whenLost, sharedKeys }
}
