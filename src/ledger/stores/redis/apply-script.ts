import type { ClaimId, Fence } from '../../core/identity.ts'
import { ID_HEX_DIGITS } from '../../core/identity.ts'
import type {
  AttachRequest,
  ClaimRequest,
  RenewRequest,
  Request,
  Settlement,
  SettleRequest,
  StartRequest,
} from '../../core/request.ts'
import { keptCode, pointerText, stateCode } from '../../store/row.ts'
import { scriptOf } from './script.ts'
import { outcomeText, whoText } from './value.ts'

/**
 * Decides the commonest requests by itself, and reads the records of all others. It is called with groups, each with what
 * its requests share, and answers per request
 *
 * - a number: for a claim, the fence of a first attempt that was granted; for a settle, that it was done, and 1 if it had
 *   waiters;
 * - a list: what the holder of a running attempt asked for was done;
 * - a text, or nothing: the record as it is stored. Nothing was changed; `transition` has to decide.
 *
 * The fast paths are those of the SQL stores. Each leaves to `transition` whatever is not as usual: any record in the way of
 * a claim, any record with a history, another owner. Most of its cost are the texts that Lua makes and the commands that it
 * calls, so all records are read by one command, and new ones written by one.
 */
export const applyScript = scriptOf(
  'maybe',
  `
local fencesAdded, opened, closed, written = {}, {}, {}, {}
local granted = nil
local nowText = whole(now)
local found = redis.call('MGET', unpack(KEYS, FIRST_KEY))
local row = 0

local function push(list, first, second)
  local size = #list
  list[size + 1] = first
  list[size + 2] = second
end

local function idOf(key) return string.sub(key, -${ID_HEX_DIGITS}) end

local groups = {}

function groups.claim(count, state, leaseMs)
  local dueAt = whole(now + tonumber(leaseMs))
  local begins, due, ends = '1 ' .. state .. ' ', ' 0 ' .. dueAt .. ' ', ' 1 ' .. nowText .. ' - - - -\\n'
  for _ = 1, count do
    row = row + 1
    if found[row] then
      answer(found[row])
    else
      local key, fence = KEYS[SHARED_KEYS + row], whole(nextFence)
      local id = idOf(key)
      push(written, key, begins .. fence .. ' ' .. ARGV[at] .. due .. fence .. ends .. ARGV[at + 1] .. '\\n\\n\\n')
      push(fencesAdded, fence, id)
      push(opened, dueAt, id)
      answer(nextFence)
      granted = nextFence
      nextFence = nextFence + FENCE_STEP
    end
    at = at + 2
  end
end

-- What is left of the head of a running attempt, after fence and claim, and where the next part begins.
local RUNNING_ON = '^ ([01]) %S+ (%d+ %d+ %d+) %- %- %- %-\\n()'

function groups.settle(count, terms, ownPointer)
  local to, retryMs, retainMs, notBefore, refuseMs, kept = string.match(terms, '^(%d) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  local expires = math.max(now + tonumber(retainMs), tonumber(notBefore))
  local expiresAt, goneAt = whole(expires), whole(expires + tonumber(refuseMs))
  local dueAt = retryMs == '-' and '-' or whole(now + tonumber(retryMs))
  local begins, due = '1 ' .. to .. ' ', ' 0 ' .. dueAt .. ' '
  local ends = ' ' .. nowText .. ' ' .. expiresAt .. ' ' .. goneAt .. ' ' .. kept .. '\\n'
  local ended = {}

  local function settle(key, stored, own, outcome)
    if not stored then return false end
    -- The claim is of one attempt only, so that a request that names it proves its ownership.
    local head = string.sub(stored, 1, 4 + #own)
    if head ~= '1 ${stateCode.running} ' .. own and head ~= '1 ${stateCode.reserved} ' .. own then return stored end
    local awaited, life, from = string.match(stored, RUNNING_ON, 5 + #own)
    if not awaited then return stored end
    -- Whose it is, and neither pointer nor history: three line ends, and nothing behind them.
    local rest, pointer = string.sub(stored, from), ''
    if ownPointer ~= '' or string.sub(rest, -3) ~= '\\n\\n\\n' then
      local whose, history
      whose, pointer, history = string.match(rest, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n')
      if not whose or history ~= '' then return stored end
      rest = whose .. '\\n' .. (ownPointer == '' and pointer or ownPointer) .. '\\n\\n'
    end
    write(key, begins .. own .. due .. life .. ends .. rest .. outcome, goneAt)
    local id = idOf(key)
    closed[#closed + 1] = id
    ended[#ended + 1] = id
    if awaited == '1' then redis.call('PUBLISH', ARGV[3], id) end
    return pointer == '' and tonumber(awaited) or { awaited, pointer }
  end

  for _ = 1, count do
    row = row + 1
    answer(settle(KEYS[SHARED_KEYS + row], found[row], ARGV[at], ARGV[at + 1]))
    at = at + 2
  end
  -- All of them end at the same time, so that they share one place in the index.
  if #ended > 0 then redis.call('ZADD', ENDS, nextEnd(tonumber(to), expiresAt, goneAt), table.concat(ended)) end
end

-- A running attempt without an end: state, fence and claim, awaited, due, life, whose, pointer, rest.
local RUNNING = '^1 ([01]) (%d+ %S+) ([01]) (%S+) (%d+ %d+ %d+) [^\\n]*\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n'

function groups.hold(count, starts, leaseMs)
  local newDueAt = leaseMs ~= '-' and whole(now + tonumber(leaseMs))

  local function hold(key, stored, own, ownPointer)
    if not stored then return false end
    local state, owner, awaited, dueAt, life, whose, pointer, rest = string.match(stored, RUNNING)
    if not state or owner ~= own then return stored end
    local id = idOf(key)
    if starts == '1' then state = '${stateCode.running}' end
    if newDueAt then push(opened, newDueAt, id) end
    if ownPointer ~= '' then pointer = ownPointer end
    local head = '1 ' .. state .. ' ' .. own .. ' ' .. awaited .. ' ' .. (newDueAt or dueAt) .. ' ' .. life
    local value = head .. ' - - - -\\n' .. whose .. '\\n' .. pointer .. '\\n' .. rest .. '\\n'
    push(written, key, value)
    if ownPointer ~= '' and awaited == '1' then redis.call('PUBLISH', ARGV[3], id) end
    return { value }
  end

  for _ = 1, count do
    row = row + 1
    answer(hold(KEYS[SHARED_KEYS + row], found[row], ARGV[at], ARGV[at + 1]))
    at = at + 2
  end
end

function groups.read(count)
  for _ = 1, count do
    row = row + 1
    answer(found[row])
  end
end

while SHARED_KEYS + row < #KEYS do
  local kind, count, first, second = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  groups[kind](count, first, second)
end
if #written > 0 then redis.call('MSET', unpack(written)) end
if granted then took(granted) end
if #fencesAdded > 0 then redis.call('ZADD', FENCES, unpack(fencesAdded)) end
if #opened > 0 then redis.call('ZADD', OPEN, unpack(opened)) end
if #closed > 0 then redis.call('ZREM', OPEN, unpack(closed)) end
answers[3] = nextFence
`,
)

type Argument = string | number

/** What the requests of a group share, and what each of them says for itself. */
interface Asked {
  readonly kind: 'claim' | 'settle' | 'hold' | 'read'
  readonly shared: readonly [Argument, Argument]
  readonly own: readonly Argument[]
}

interface Group {
  readonly asked: Asked
  readonly requests: Request[]
  readonly own: Argument[]
}

/** How the script is asked, and in which order it answers. */
export function applyArguments(requests: readonly Request[]): {
  readonly ordered: readonly Request[]
  readonly args: readonly Argument[]
} {
  const groups = new Map<string, Group>()
  for (const request of requests) {
    const asked = askedOf(request)
    const name = `${asked.kind} ${asked.shared[0]} ${asked.shared[1]}`
    let group = groups.get(name)
    if (group === undefined) {
      group = { asked, requests: [], own: [] }
      groups.set(name, group)
    }
    group.requests.push(request)
    group.own.push(...asked.own)
  }
  const all = [...groups.values()]
  return {
    ordered: all.flatMap((group) => group.requests),
    args: all.flatMap(({ asked, requests: { length }, own }) => [asked.kind, length, ...asked.shared, ...own]),
  }
}

/** Requests without a fast path are only read. */
function askedOf(request: Request): Asked {
  switch (request.kind) {
    case 'claim':
      return claimAsked(request)
    case 'settle':
      if (request.to.note !== undefined) return READ
      return request.to.state === 'unknown' ? READ : settleAsked(request, request.to)
    case 'start':
    case 'renew':
    case 'attach':
      return holdAsked(request)
    case 'release':
    case 'reconcile':
    case 'probe':
    case 'resolve':
    case 'forget':
    case 'unique':
      return READ
  }
}

const READ: Asked = { kind: 'read', shared: ['', ''], own: [] }

function claimAsked({ identity, fingerprints, policy, claimId, leaseMs, start }: ClaimRequest): Asked {
  const who = whoText({ identity, fingerprint: fingerprints[0], policy })
  const state = start ? stateCode.running : stateCode.reserved
  return { kind: 'claim', shared: [state, Math.ceil(leaseMs)], own: [claimId, who] }
}

function settleAsked({ grant, pointer }: SettleRequest, to: Exclude<Settlement, { state: 'unknown' }>): Asked {
  const { policy } = grant
  const retryable = to.state === 'failed_retryable'
  // A window counts from settling, or from the claim; either way it does not end before it was settled.
  const fromClaim = policy.retainFrom === 'claimed'
  const retryMs = retryable ? Math.ceil(to.retryAfterMs) : '-'
  const retainMs = fromClaim ? 0 : policy.retainMs
  const notBefore = fromClaim ? grant.claimedAt + policy.retainMs : 0
  const refuseMs = retryable ? 0 : policy.refuseMs
  const terms = `${stateCode[to.state]} ${retryMs} ${retainMs} ${notBefore} ${refuseMs} ${keptCode(to.outcome.kept)}`
  return {
    kind: 'settle',
    shared: [terms, pointerText(pointer) ?? ''],
    own: [ownerOf(grant), outcomeText(to.outcome.data)],
  }
}

function holdAsked(request: StartRequest | RenewRequest | AttachRequest): Asked {
  const leaseMs = request.kind === 'attach' ? '-' : Math.ceil(request.leaseMs)
  const pointer = request.kind === 'attach' ? (pointerText(request.pointer) ?? '') : ''
  return { kind: 'hold', shared: [request.kind === 'start' ? 1 : 0, leaseMs], own: [ownerOf(request), pointer] }
}

const ownerOf = ({ fence, claimId }: { readonly fence: Fence; readonly claimId: ClaimId }) => `${fence} ${claimId}`
