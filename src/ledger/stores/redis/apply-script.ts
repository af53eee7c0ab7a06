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
import { EXPIRY_SLACK_MS, recordScriptOf, SHARED_ANSWERS } from './script.ts'
import { FORMAT, outcomeText, ownerText, whoText } from './value.ts'

const LINE_END = 10

/** A digit as Lua compares it without making a text. */
const byteOf = (digit: number): number => String(digit).charCodeAt(0)

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
 * calls, so all records are read by one command, and new ones written and indexed by one each. The loops stand here instead
 * of in functions, because every call would make those functions again.
 */
export const applyScript = recordScriptOf(
  'maybe',
  `
local find, byte = string.find, string.byte
local granted, written = {}, {}
local firstFence = nextFence
local nowText = format('%d', now)
local row, rows = 0, #KEYS - 2

while row < rows do
  local kind, upTo, first, second = ARGV[at], row + ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  if kind == 'claim' then
    local head = ' ' .. first .. ' 0 ' .. format('%d', now + second) .. ' - - - -\\n'
    local life = ' 1 ' .. nowText .. ' '
    while row < upTo do
      row = row + 1
      local result = found[row + 1]
      if not result then
        local key, fence, size = KEYS[2 + row], format('%d', nextFence), #written
        written[size + 1] = key
        written[size + 2] = '${FORMAT} ' .. fence .. ' ' .. ARGV[at] .. head .. fence .. life .. ARGV[at + 1] .. '\\n\\n\\n'
        granted[#granted + 1] = sub(key, -ID_DIGITS)
        result = nextFence
        nextFence = nextFence + FENCE_STEP
      end
      answers[${SHARED_ANSWERS} + row] = result
      at = at + 2
    end
  elseif kind == 'settle' then
    local to, retryMs, retainMs, notBefore, refuseMs, kept = match(first, '^(%d) (%S+) (%S+) (%S+) (%S+) (%S+)$')
    local expires = math.max(now + retainMs, tonumber(notBefore))
    local goneAt = expires + refuseMs
    local dueAt = retryMs == '-' and '-' or format('%d', now + retryMs)
    local head = format('%s 0 %s %s %d %d %s', to, dueAt, nowText, expires, goneAt, kept)
    -- A record with an end also gets one from Redis, in real time.
    local expiry = goneAt < 1e14 and format('%d', goneAt - offset + ${EXPIRY_SLACK_MS})
    while row < upTo do
      row = row + 1
      local stored, own = found[row + 1], ARGV[at]
      local result = stored
      -- The claim is of one attempt only, so that a request that names it proves its ownership.
      if stored and find(stored, own, 1, true) == 1 and byte(stored, #own + 1) <= ${byteOf(stateCode.running)} then
        local from, pointer, rest = find(stored, '\\n', #own, true), '', nil
        if second == '' and byte(stored, -2) == ${LINE_END} and byte(stored, -3) == ${LINE_END} then
          -- Whose it is, and neither pointer nor history: three line ends, and nothing behind them.
          rest = sub(stored, from)
        else
          local who, history
          who, pointer, history = match(stored, '^(\\n[^\\n]*\\n)([^\\n]*)\\n([^\\n]*)\\n', from)
          if history == '' then rest = who .. (second == '' and pointer or second) .. '\\n\\n' end
        end
        if rest then
          local value = own .. head .. rest .. ARGV[at + 1]
          if expiry then call('SET', KEYS[2 + row], value, 'PXAT', expiry) else call('SET', KEYS[2 + row], value) end
          local awaited = byte(stored, #own + 3) - ${byteOf(0)}
          if awaited == 1 then call('PUBLISH', ARGV[3], sub(KEYS[2 + row], -ID_DIGITS)) end
          result = pointer == '' and awaited or { awaited, pointer }
        end
      end
      answers[${SHARED_ANSWERS} + row] = result
      at = at + 2
    end
  elseif kind == 'hold' then
    local newDueAt = second ~= '-' and format('%d', now + second)
    while row < upTo do
      row = row + 1
      local stored, own, ownPointer = found[row + 1], ARGV[at], ARGV[at + 1]
      local result = stored
      if stored and find(stored, own, 1, true) == 1 and byte(stored, #own + 1) <= ${byteOf(stateCode.running)} then
        local state, awaited, dueAt, who, pointer, rest =
          match(stored, '^(%d) (%d) (%S+) [^\\n]*(\\n[^\\n]*\\n)([^\\n]*)(\\n[^\\n]*\\n)', #own + 1)
        if first == '1' then state = '${stateCode.running}' end
        if ownPointer ~= '' then pointer = ownPointer end
        local value = own .. state .. ' ' .. awaited .. ' ' .. (newDueAt or dueAt) .. ' - - - -' .. who .. pointer .. rest
        local size = #written
        written[size + 1] = KEYS[2 + row]
        written[size + 2] = value
        if ownPointer ~= '' and awaited == '1' then call('PUBLISH', ARGV[3], sub(KEYS[2 + row], -ID_DIGITS)) end
        result = { value }
      end
      answers[${SHARED_ANSWERS} + row] = result
      at = at + 2
    end
  else
    while row < upTo do
      row = row + 1
      answers[${SHARED_ANSWERS} + row] = found[row + 1]
    end
  end
end
if #granted > 0 then
  call('ZADD', FENCES, format('%d', firstFence), table.concat(granted))
  last, turns = nextFence - FENCE_STEP, turns + 1
  answers[6], answers[7] = last, turns
  written[#written + 1] = META
  written[#written + 1] = format(meta, epoch, last, turns, offset, seen)
end
if #written > 0 then call('MSET', unpack(written)) end
answers[3] = nextFence
`,
)

/** What the requests of a group share, and what each of them says for itself. */
interface Asked {
  readonly kind: 'claim' | 'settle' | 'hold' | 'read'
  readonly first: string
  readonly second: string
}

interface Group extends Asked {
  readonly rows: Request[]
  readonly places: number[]
  readonly own: string[]
}

/** In which order the script is asked and answers, and where each answer belongs. */
export interface Ordered {
  readonly rows: readonly Request[]
  readonly places: readonly number[]
  /** Adds the arguments of the script. */
  addTo(words: string[]): void
}

export function orderedFor(requests: readonly Request[], places: readonly number[]): Ordered {
  const groups: Group[] = []
  for (let index = 0; index < requests.length; index++) {
    const group = groupFor(groups, requests[index] as Request)
    group.rows.push(requests[index] as Request)
    group.places.push(places[index] as number)
  }
  const addTo = (words: string[]) => {
    for (const { kind, first, second, rows, own } of groups) {
      words.push(kind, String(rows.length), first, second)
      for (const each of own) words.push(each)
    }
  }
  const [group] = groups
  if (groups.length === 1 && group !== undefined) return { rows: group.rows, places: group.places, addTo }
  return { rows: groups.flatMap(({ rows }) => rows), places: groups.flatMap((each) => each.places), addTo }
}

function groupOf(groups: Group[], kind: Asked['kind'], first = '', second = ''): Group {
  for (const group of groups) {
    if (group.kind === kind && group.first === first && group.second === second) return group
  }
  const group: Group = { kind, first, second, rows: [], places: [], own: [] }
  groups.push(group)
  return group
}

/** Requests without a fast path are only read. */
function groupFor(groups: Group[], request: Request): Group {
  switch (request.kind) {
    case 'claim':
      return claimGroup(groups, request)
    case 'settle':
      if (request.to.note !== undefined || request.to.state === 'unknown') return groupOf(groups, 'read')
      return settleGroup(groups, request, request.to)
    case 'start':
    case 'renew':
    case 'attach':
      return holdGroup(groups, request)
    case 'release':
    case 'reconcile':
    case 'probe':
    case 'resolve':
    case 'forget':
    case 'unique':
    case 'replace':
      return groupOf(groups, 'read')
  }
}

function claimGroup(groups: Group[], request: ClaimRequest): Group {
  const { identity, fingerprints, policy, claimId, leaseMs, start } = request
  const state = start ? stateCode.running : stateCode.reserved
  const group = groupOf(groups, 'claim', String(state), String(Math.ceil(leaseMs)))
  group.own.push(claimId, whoText({ identity, fingerprint: fingerprints[0], policy }))
  return group
}

function settleGroup(groups: Group[], request: SettleRequest, to: Exclude<Settlement, { state: 'unknown' }>): Group {
  const { grant, pointer } = request
  const { policy } = grant
  const retryable = to.state === 'failed_retryable'
  // A window counts from settling, or from the claim; either way it does not end before it was settled.
  const fromClaim = policy.retainFrom === 'claimed'
  const retryMs = retryable ? Math.ceil(to.retryAfterMs) : '-'
  const retainMs = fromClaim ? 0 : policy.retainMs
  const notBefore = fromClaim ? grant.claimedAt + policy.retainMs : 0
  const refuseMs = retryable ? 0 : policy.refuseMs
  const terms = `${stateCode[to.state]} ${retryMs} ${retainMs} ${notBefore} ${refuseMs} ${keptCode[to.outcome.kept]}`
  const group = groupOf(groups, 'settle', terms, pointer === null ? '' : pointerText(pointer))
  group.own.push(ownerText(grant.fence, grant.claimId), outcomeText(to.outcome.data))
  return group
}

function holdGroup(groups: Group[], request: StartRequest | RenewRequest | AttachRequest): Group {
  const leaseMs = request.kind === 'attach' ? '-' : String(Math.ceil(request.leaseMs))
  const group = groupOf(groups, 'hold', request.kind === 'start' ? '1' : '0', leaseMs)
  const pointer = request.kind === 'attach' ? pointerText(request.pointer) : ''
  group.own.push(ownerText(request.fence, request.claimId), pointer)
  return group
}
