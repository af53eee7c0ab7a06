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
 * - a number: the fence of a first attempt that was granted;
 * - a list: what the holder of a running attempt asked for was done;
 * - a text, or nothing: the record as it is stored. Nothing was changed; `transition` has to decide.
 *
 * The fast paths are those of the SQL stores. Each leaves to `transition` whatever is not as usual: any record in the way
 * of a claim, any record with a history, another owner, another policy.
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

local function claim(key, id, stored)
  local state, claimId, leaseMs, who = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  if stored then return answer(stored) end
  local fence, dueAt = whole(nextFence), whole(now + tonumber(leaseMs))
  local head = '1 ' .. state .. ' ' .. fence .. ' ' .. claimId .. ' 0 ' .. dueAt
  local life = ' ' .. fence .. ' 1 ' .. nowText .. ' - - - -\\n'
  redis.call('SET', key, head .. life .. who .. '\\n\\n\\n')
  push(fencesAdded, fence, id)
  push(opened, dueAt, id)
  answer(nextFence)
  granted = nextFence
  nextFence = nextFence + FENCE_STEP
end

local function settle(key, id, stored)
  local ownFence, ownClaim, who, to, kept = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local retryMs, retainMs, notBefore, refuseMs = ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8]
  local ownPointer, outcome = ARGV[at + 9], ARGV[at + 10]
  at = at + 11
  if not stored then return answer(false) end
  local state, fence, claimId, awaited, _, life, whose, pointer, rest = string.match(stored, RUNNING)
  if not state or fence ~= ownFence or claimId ~= ownClaim or whose ~= who or rest ~= '' then return answer(stored) end
  local dueAt = retryMs == '-' and '-' or whole(now + tonumber(retryMs))
  local expires = math.max(now + tonumber(retainMs), tonumber(notBefore))
  local expiresAt, goneAt = whole(expires), whole(expires + tonumber(refuseMs))
  local kepts = ' ' .. nowText .. ' ' .. expiresAt .. ' ' .. goneAt .. ' ' .. kept .. '\\n'
  local head = '1 ' .. to .. ' ' .. fence .. ' ' .. claimId .. ' 0 ' .. dueAt .. ' ' .. life .. kepts
  local named = ownPointer == '' and pointer or ownPointer
  write(key, head .. whose .. '\\n' .. named .. '\\n\\n' .. outcome, goneAt)
  closed[#closed + 1] = id
  push(ended, nextEnd(tonumber(to), expiresAt, goneAt), id)
  if awaited == '1' then redis.call('PUBLISH', ARGV[3], id) end
  answer({ awaited, pointer })
end

local function hold(key, id, stored)
  local ownFence, ownClaim, starts, leaseMs, ownPointer = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  at = at + 5
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
  local stored = redis.call('GET', key)
  at = at + 2
  if kind == 'claim' then claim(key, id, stored)
  elseif kind == 'settle' then settle(key, id, stored)
  elseif kind == 'hold' then hold(key, id, stored)
  else answer(stored) end
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
  return [
    grant.fence,
    grant.claimId,
    whoText(grant),
    stateCode[to.state],
    keptCode(to.outcome.kept),
    retryable ? Math.ceil(to.retryAfterMs) : '-',
    fromClaim ? 0 : policy.retainMs,
    fromClaim ? grant.claimedAt + policy.retainMs : 0,
    retryable ? 0 : policy.refuseMs,
    pointerText(pointer) ?? '',
    outcomeText(to.outcome.data),
  ]
}

function holdArguments(request: StartRequest | RenewRequest | AttachRequest): (string | number)[] {
  const leaseMs = request.kind === 'attach' ? '-' : Math.ceil(request.leaseMs)
  const pointer = request.kind === 'attach' ? (pointerText(request.pointer) ?? '') : ''
  return [request.fence, request.claimId, request.kind === 'start' ? 1 : 0, leaseMs, pointer]
}
