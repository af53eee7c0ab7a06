import type { Identity, RecordId } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { BusyCaller, Store } from './store/port.ts'

/** Claims that were granted; attempts that a record answered; attempts that were refused: in progress, or key reused. */
export type Counted = 'claims' | 'replays' | 'conflicts'

/** Counts for people, written behind in batches: a hot key must not cost a write per replay. */
export interface TallyBook {
  count(id: RecordId, identity: Identity, what: Counted): void
  /** Writes what was counted since the last time. */
  flush(): Promise<void>
}

type Counts = { -readonly [name in Counted]: number }
type Busy = Omit<BusyCaller, Counted> & Counts

export function createTallyBook(store: Store): TallyBook {
  let records = new Map<RecordId, Counts>()
  let callers = new Map<string, Busy>()
  /** Whoever was counted last is often counted next. */
  let last: Busy | null = null

  function busyOf({ tenant, caller, operation }: Identity): Busy | null {
    if (last?.operation === operation && last.caller === caller && last.tenant === tenant) return last
    const name = `${tenant}\0${caller}\0${operation}`
    let busy = callers.get(name)
    if (busy === undefined) {
      // Counts are for orientation: past the bound some are lost, never a caller.
      if (callers.size >= limits.tallyRows) return null
      busy = { tenant, caller, operation, claims: 0, replays: 0, conflicts: 0 }
      callers.set(name, busy)
    }
    last = busy
    return busy
  }

  return {
    count(id, identity, what) {
      const busy = busyOf(identity)
      if (busy === null) return
      busy[what]++
      if (what === 'claims') return
      let counts = records.get(id)
      if (counts === undefined) {
        if (records.size >= limits.tallyRows) return
        counts = { claims: 0, replays: 0, conflicts: 0 }
        records.set(id, counts)
      }
      counts[what]++
    },
    async flush() {
      if (callers.size === 0) return
      const rows = [...records].map(([id, { replays, conflicts }]) => ({ id, replays, conflicts }))
      const tally = { records: rows, callers: [...callers.values()] }
      records = new Map()
      callers = new Map()
      last = null
      await store.upkeep.tally(tally, { timeoutMs: limits.storeCallMs })
    },
  }
}
