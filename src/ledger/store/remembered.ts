import type { Fence, RecordId } from '../core/identity.ts'
import type { LedgerRecord } from '../core/record.ts'
import { goneAtOf } from '../core/record.ts'

/**
 * How many of the latest acknowledgements a process remembers, of claims, renewals and outcomes alike. What a failover forgets are the last records before
 * it, so that the newest are the ones to look for; the question for all of them is one statement of some kilobytes.
 */
const REMEMBERED_MOST = 512

/** What the store has acknowledged of a record. */
export interface Acknowledged {
  readonly id: RecordId
  readonly fence: Fence
  /** Its outcome was acknowledged, not only its claim. */
  readonly settled: boolean
  /** From here on it may be missing, by the store's clock; null while only an event can end it. */
  readonly goneAt: number | null
}

/** What the store has of a record that was acknowledged. */
export interface Present {
  readonly id: RecordId
  readonly fence: Fence
  readonly open: boolean
}

/** The latest records that a process was acknowledged, so that it notices when a server does not have them any more. */
export interface Remembered {
  note(record: LedgerRecord | null): void
  /** Each record once, in its latest form. */
  all(): readonly Acknowledged[]
  /** Those that the store should have and has not, by what it has now. They are forgotten, so that each is named once. */
  lost(present: readonly Present[], now: number): readonly RecordId[]
}

export function createRemembered(most = REMEMBERED_MOST): Remembered {
  // Records are kept in places that are written in turn: a new one costs no search and no copy.
  const places: (Acknowledged | undefined)[] = []
  let next = 0

  function all(): readonly Acknowledged[] {
    const latest = new Map<RecordId, Acknowledged>()
    const inOrder = [...places.slice(next), ...places.slice(0, next)]
    for (const place of inOrder) if (place !== undefined) latest.set(place.id, place)
    return [...latest.values()]
  }

  return {
    note(record) {
      if (record === null) return
      const { id, fence, state } = record
      places[next] = {
        id,
        fence,
        settled: state === 'succeeded' || state === 'failed_terminal',
        goneAt: goneAtOf(record),
      }
      next = (next + 1) % most
    },
    all,
    lost(present, now) {
      const found = new Map(present.map((each) => [each.id, each]))
      const lost = all().filter(({ id, fence, settled, goneAt }) => {
        if (goneAt !== null && goneAt <= now) return false
        const there = found.get(id)
        return there === undefined || there.fence < fence || (settled && there.open && there.fence === fence)
      })
      const ids = new Set(lost.map(({ id }) => id))
      for (const [at, place] of places.entries()) {
        if (place !== undefined && ids.has(place.id)) places[at] = undefined
      }
      return [...ids]
    },
  }
}
