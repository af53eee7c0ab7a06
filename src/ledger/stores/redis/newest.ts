import type { Fence } from '../../core/identity.ts'
import type { RecordView } from '../../store/port.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import { indexScriptOf } from './script.ts'
import { decodeRecord } from './value.ts'

/** Places that are read at once: each may hold a whole pack of ids. */
const PLACES = 16

/**
 * Records of one bucket along an index by fence, newest first, below a fence. A record that Redis has removed by itself, or
 * that has another fence by now, still stands in its place until the sweep; it is returned without a value, so that a walk
 * gets past it.
 */
const newestScript = indexScriptOf(
  'no',
  `
local index = ARGV[4] == 'unknowns' and UNKNOWNS or FENCES
local below, left = tonumber(ARGV[5]), tonumber(ARGV[6])
local from = '(' .. ARGV[5]
repeat
  local places = call('ZREVRANGEBYSCORE', index, from, '-inf', 'WITHSCORES', 'LIMIT', 0, ${PLACES})
  for place = 1, #places, 2 do
    local ids, score = places[place], places[place + 1]
    from = '(' .. score
    for last = #ids, 1, -ID_DIGITS do
      local fence = score + (last / ID_DIGITS - 1) * FENCE_STEP
      if fence < below and left > 0 then
        left = left - 1
        local id = sub(ids, last - ID_DIGITS + 1, last)
        local value = call('GET', ARGV[7] .. id)
        if value and select(2, partsOf(value)) ~= fence then value = false end
        -- A count does not need the outcomes, which may be large.
        if value and ARGV[8] == 'heads' then value = match(value, '^[^\\n]*\\n[^\\n]*\\n') .. '\\n\\n' end
        answer({ id, whole(fence), value, call('HGET', COUNTS, id) })
      end
    end
  end
until #places == 0 or left == 0
`,
)

export interface Walk {
  readonly index: 'fences' | 'unknowns'
  readonly below: Fence | null
  /** Rows that are asked of each bucket at once. */
  readonly rows: number
  readonly heads?: boolean
}

interface Found {
  readonly fence: Fence
  readonly view: RecordView | null
}

export interface Newest {
  readonly now: number
  /** Newest first over all buckets, without a gap down to the floor. */
  readonly found: readonly Found[]
  /** Continue below it; null when there is nothing more. */
  readonly floor: Fence | null
}

export async function readNewest(core: Core, walk: Walk, deadline: CallDeadline): Promise<Newest> {
  const below = walk.below ?? Number.MAX_SAFE_INTEGER
  const parts = await Promise.all(
    core.names.buckets.map(async (bucket) => {
      const args = [walk.index, below, walk.rows, bucket.record, walk.heads === true ? 'heads' : 'all']
      const { now, answers } = await core.run(newestScript, bucket, { args }, deadline)
      const found = (answers as RowAnswer[]).map(foundIn)
      return { now, found, last: found.length < walk.rows ? null : (found.at(-1)?.fence ?? null) }
    }),
  )
  // Below the last row of a bucket that has more, something newer may still come from it.
  const floors = parts.flatMap(({ last }) => (last === null ? [] : [last]))
  const floor = floors.length === 0 ? null : Math.max(...floors)
  const found = parts.flatMap((part) => part.found).filter(({ fence }) => floor === null || fence >= floor)
  return {
    now: Math.max(...parts.map(({ now }) => now)),
    found: found.toSorted((a, b) => b.fence - a.fence),
    floor,
  }
}

type RowAnswer = [id: string, fence: string, value: string | null, counts: string | null]

function foundIn([id, fence, value, counts]: RowAnswer): Found {
  return { fence: Number(fence), view: value === null ? null : viewOf(id, value, counts) }
}

/** Counts of an earlier incarnation are not those of this one. */
export function viewOf(id: string, value: string, counts: string | null): RecordView {
  const record = decodeRecord(id, value)
  const [incarnation, replays = 0, conflicts = 0, inProgress = 0, repeatedAt = null] = (counts ?? '')
    .split(' ')
    .map(Number)
  if (incarnation !== record.incarnation) return { record, replays: 0, conflicts: 0, inProgress: 0, repeatedAt: null }
  return { record, replays, conflicts, inProgress, repeatedAt }
}
