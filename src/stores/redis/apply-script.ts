import type {
  AttachRequest,
  ClaimRequest,
  RenewRequest,
  Request,
  SettleRequest,
  StartRequest,
} from '../../core/request.ts'
import { keptCode, pointerText, stateCode } from '../../store/row.ts'
import { scriptOf } from './script.ts'
import { outcomeText, whoText } from './value.ts'

/**
 * Decides the commonest requests by itself, and reads the records of all others. Per request it answers
 *
 * - a number: for a claim, the fence of a first attempt that was granted; for a settle, that it was done, and 1 if
 *   somebody waited for it;
 * - a list: what the holder of a running attempt asked for was done;
 * - a text, or nothing: the record as it is stored. Nothing was changed; `transition` has to decide.
 *
 * The fast paths are those of the SQL stores. Each leaves to `transition` whatever is not as usual: any record in the way
 * of a claim, any record with a history, another owner. Most of its cost is Lua that makes texts, so a record is compared
 * and written in as few of them as it takes.
 */
export const applyScript = scriptOf(
  'maybe',
  `
local fencesAdded, opened, closed, ended = {}, {}, {}, {}
local granted = nil
local nowText = whole(now)

-- A running attempt without a history, or nothing: state, fence, claim, awaited, life, whose, pointer, rest.
local RUNNING = '^1 ([01]) (%d+) (%S+) ([01]) (%S+) (%d+ %d+ %d+) [^\\n]*\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n'

local function push(list, score, id)
  list[#list + 1] = score
  list[#list + 1] = id
end

local lastLeaseMs, lastDueAt

-- Tried at once, because most claims are the first of their key.
local function claim(key, id)
  local state, claimId, leaseMs, who = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  if leaseMs ~= lastLeaseMs then lastLeaseMs, lastDueAt = leaseMs, whole(now + tonumber(leaseMs)) end
  local fence = whole(nextFence)
  local value = '1 ' .. state .. ' ' .. fence .. ' ' .. claimId .. ' 0 ' .. lastDueAt .. ' ' .. fence .. ' 1 ' .. nowText
    .. ' - - - -\\n' .. who .. '\\n\\n\\n'
  if not redis.call('SET', key, value, 'NX') then return answer(redis.call('GET', key)) end
  push(fencesAdded, fence, id)
  push(opened, lastDueAt, id)
  answer(nextFence)
  granted = nextFence
  nextFence = nextFence + FENCE_STEP
end

local lastTerms, dueAt, kepts, goneAt, endAt

-- When a record ends is the same for all that are settled now under the same policy.
local function reckon(terms, to)
  local retryMs, retainMs, notBefore, refuseMs, kept = string.match(terms, '^%d (%S+) (%S+) (%S+) (%S+) (%S+)$')
  local expires = math.max(now + tonumber(retainMs), tonumber(notBefore))
  local expiresAt = whole(expires)
  goneAt = whole(expires + tonumber(refuseMs))
  dueAt = retryMs == '-' and '-' or whole(now + tonumber(retryMs))
  kepts = ' ' .. nowText .. ' ' .. expiresAt .. ' ' .. goneAt .. ' ' .. kept .. '\\n'
  endAt = nextEnd(tonumber(to), expiresAt, goneAt)
  lastTerms = terms
end

-- What is left of the head of a running attempt, after fence and claim, and where the next part begins.
local RUNNING_ON = '^ ([01]) %S+ (%d+ %d+ %d+) %- %- %- %-\\n()'

local function settle(key, id)
  local own, terms, ownPointer, outcome = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  local stored = redis.call('GET', key)
  if not stored then return answer(false) end
  -- The claim is of one attempt only, so that whoever names it knows whose record it is.
  local begins = string.sub(stored, 1, 4 + #own)
  if begins ~= '1 ${stateCode.running} ' .. own and begins ~= '1 ${stateCode.reserved} ' .. own then return answer(stored) end
  local awaited, life, from = string.match(stored, RUNNING_ON, 5 + #own)
  if not awaited then return answer(stored) end
  local to = string.sub(terms, 1, 1)
  if terms ~= lastTerms then reckon(terms, to) end
  local head = '1 ' .. to .. ' ' .. own .. ' 0 ' .. dueAt .. ' ' .. life .. kepts
  -- Whose it is, and neither pointer nor history: three line ends, and nothing behind them.
  local rest = string.sub(stored, from)
  local pointer = ''
  if string.sub(rest, -3) == '\\n\\n\\n' and ownPointer == '' then
    write(key, head .. rest .. outcome, goneAt)
  else
    local whose, history
    whose, pointer, history = string.match(rest, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n')
    if not whose or history ~= '' then return answer(stored) end
    write(key, head .. whose .. '\\n' .. (ownPointer == '' and pointer or ownPointer) .. '\\n\\n' .. outcome, goneAt)
  end
  closed[#closed + 1] = id
  push(ended, endAt, id)
  if awaited == '1' then redis.call('PUBLISH', ARGV[3], id) end
  if pointer == '' then answer(tonumber(awaited)) else answer({ awaited, pointer }) end
end

local function hold(key, id)
  local ownFence, ownClaim, starts, leaseMs, ownPointer = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  at = at + 5
  local stored = redis.call('GET', key)
  if not stored then return answer(false) end
  local state, fence, claimId, awaited, dueAt, life, whose, pointer, rest = string.match(stored, RUNNING)
  if not state or fence ~= ownFence or claimId ~= ownClaim then return answer(stored) end
  if starts == '1' then state = '${stateCode.running}' end
  if leaseMs ~= '-' then
    dueAt = whole(now + tonumber(leaseMs))
    push(opened, dueAt, id)
  end
  if ownPointer ~= '' then pointer = ownPointer end
  local head = '1 ' .. state .. ' ' .. fence .. ' ' .. claimId .. ' ' .. awaited .. ' ' .. dueAt .. ' ' .. life
  local value = head .. ' - - - -\\n' .. whose .. '\\n' .. pointer .. '\\n' .. rest .. '\\n'
  redis.call('SET', key, value)
  if ownPointer ~= '' and awaited == '1' then redis.call('PUBLISH', ARGV[3], id) end
  answer({ value })
end

for index = FIRST_KEY, #KEYS do
  local key, kind, id = KEYS[index], ARGV[at], ARGV[at + 1]
  at = at + 2
  if kind == 'claim' then claim(key, id)
  elseif kind == 'settle' then settle(key, id)
  elseif kind == 'hold' then hold(key, id)
  else answer(redis.call('GET', key)) end
end
if granted then took(granted) end
if #fencesAdded > 0 then redis.call('ZADD', FENCES, unpack(fencesAdded)) end
if #opened > 0 then redis.call('ZADD', OPEN, unpack(opened)) end
if #closed > 0 then redis.call('ZREM', OPEN, unpack(closed)) end
if #ended > 0 then redis.call('ZADD', ENDS, unpack(ended)) end
answers[3] = nextFence
`,
)

/** How the script is asked. Requests without a fast path are only read. */
export function applyArguments(request: Request): (string | number)[] {
  switch (request.kind) {
    case 'claim':
      return ['claim', request.id, ...claimArguments(request)]
    case 'settle':
      return request.to.state === 'unknown' ? ['read', request.id] : ['settle', request.id, ...settleArguments(request)]
    case 'start':
    case 'renew':
    case 'attach':
      return ['hold', request.id, ...holdArguments(request)]
    case 'release':
    case 'reconcile':
    case 'probe':
    case 'resolve':
    case 'forget':
    case 'unique':
      return ['read', request.id]
  }
}

function claimArguments({
  identity,
  fingerprints,
  policy,
  claimId,
  leaseMs,
  start,
}: ClaimRequest): (string | number)[] {
  const who = whoText({ identity, fingerprint: fingerprints[0], policy })
  return [start ? stateCode.running : stateCode.reserved, claimId, Math.ceil(leaseMs), who]
}

function settleArguments({ grant, to, pointer }: SettleRequest): (string | number)[] {
  if (to.state === 'unknown') throw new TypeError('An unknown outcome has no fast path.')
  const { policy } = grant
  const retryable = to.state === 'failed_retryable'
  // A window counts from settling, or from the claim; either way it does not end before it was settled.
  const fromClaim = policy.retainFrom === 'claimed'
  const retryMs = retryable ? Math.ceil(to.retryAfterMs) : '-'
  const retainMs = fromClaim ? 0 : policy.retainMs
  const notBefore = fromClaim ? grant.claimedAt + policy.retainMs : 0
  const refuseMs = retryable ? 0 : policy.refuseMs
  const terms = `${stateCode[to.state]} ${retryMs} ${retainMs} ${notBefore} ${refuseMs} ${keptCode(to.outcome.kept)}`
  return [`${grant.fence} ${grant.claimId}`, terms, pointerText(pointer) ?? '', outcomeText(to.outcome.data)]
}

function holdArguments(request: StartRequest | RenewRequest | AttachRequest): (string | number)[] {
  const leaseMs = request.kind === 'attach' ? '-' : Math.ceil(request.leaseMs)
  const pointer = request.kind === 'attach' ? (pointerText(request.pointer) ?? '') : ''
  return [request.fence, request.claimId, request.kind === 'start' ? 1 : 0, leaseMs, pointer]
}
