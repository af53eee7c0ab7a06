import { createHash } from 'node:crypto'
import type { Fence } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import { stateCode } from '../../store/row.ts'
import { indexScriptOf } from './script.ts'
import { encodeRecord } from './value.ts'

/** What was decided longer ago than this is decided again: the time that it went by is over. */
const DECIDED_MS = SECOND

/**
 * Replaces records that `transition` was asked about, each only if it has not changed since. Answers 1 where it did, and 0
 * where the request has to be decided again.
 */
export const swapScript = indexScriptOf(
  'maybe',
  `
local highest = 0

-- The place of a record moves with its fence only; a record that Redis lost and a settle wrote again may still have one.
local function index(id, value)
  local state, fence, dueAt, _, goneAt = partsOf(value)
  highest = math.max(highest, fence)
  local place = call('ZREVRANGEBYSCORE', FENCES, whole(fence), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local from = place[1] and string.find(place[1], id, 1, true)
  local isIndexed = from and place[2] + (from - 1) / ID_DIGITS * FENCE_STEP == fence
  if not isIndexed then call('ZADD', FENCES, whole(fence), id) end
  -- Its fence was chosen before this script, so that the search for lapsed leases may be past it already.
  local isSeen = isIndexed or fence <= tonumber(seen)
  if isOpen(state) and isSeen then call('ZADD', OPEN, dueAt, id) end
  if state == ${stateCode.unknown} then
    call('ZADD', UNKNOWNS, whole(fence), id)
  else
    call('ZREM', UNKNOWNS, id)
  end
  return expiryOf(goneAt)
end

for each = FIRST_KEY, #KEYS do
  local id, read, decidedAt, fence = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local value, wake = ARGV[at + 4], ARGV[at + 5]
  at = at + 6
  local stored = call('GET', KEYS[each])
  if (stored and redis.sha1hex(stored) or '') ~= read or now - tonumber(decidedAt) > ${DECIDED_MS} then
    answer(0)
  else
    highest = math.max(highest, tonumber(fence))
    write(KEYS[each], value, index(id, value))
    if wake == '1' then call('PUBLISH', ARGV[3], id) end
    answer(1)
  end
end
if highest > 0 then call('SET', META, took(highest)) end
`,
)

export interface Swap {
  readonly stored: string | null
  readonly before: LedgerRecord | null
  readonly after: LedgerRecord
  /** The time of the decision, and the fence that it could take: for the record, or for a probe. */
  readonly now: number
  readonly fence: Fence
}

export function swapArguments({ stored, before, after, now, fence }: Swap): (string | number)[] {
  const seen = stored === null ? '' : createHash('sha1').update(stored).digest('hex')
  return [after.id, seen, now, fence, encodeRecord(after), wakesWaiters(before, after) ? 1 : 0]
}
