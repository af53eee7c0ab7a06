import type { Runtime } from '../runtime/runtime.ts'
import type { Identity, RecordId } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { BusyCaller, RecordTally, Repeats, Store } from './store/port.ts'

/** Claims that were granted, and everything else by what was answered. */
export type Counted = 'claims' | keyof Repeats

/** Counts for people, written behind in batches: a hot key must not cost a write per replay. */
export interface TallyBook {
  count(id: RecordId, identity: Identity, what: Counted): void
  /** Writes what was counted since the last time. */
  flush(): Promise<void>
  /** Calls back at the first count since the last flush. */
  whenCounted(begin: () => void): void
}

type Busy = { -readonly [name in keyof BusyCaller]: BusyCaller[name] }
type Repeated = { -readonly [name in keyof Repeats]: number } & { lastMs: number }

export function createTallyBook(store: Store, runtime: Pick<Runtime, 'monotonicMs'>): TallyBook {
  let records = new Map<RecordId, Repeated>()
  let callers = new Map<string, Busy>()
  /** The caller that was counted last is often counted next. */
  let last: Busy | null = null
  let begin = () => {}

  function busyOf({ tenant, caller, operation }: Identity): Busy | null {
    const name = `${tenant}\0${caller}\0${operation}`
    let busy = callers.get(name)
    if (busy === undefined) {
      // Counts are for orientation: past the bound some are lost, never a caller.
      if (callers.size >= limits.tallyRows) return null
      busy = { tenant, caller, operation, claims: 0, replays: 0, conflicts: 0, inProgress: 0 }
      callers.set(name, busy)
      if (callers.size === 1) begin()
    }
    last = busy
    return busy
  }

  return {
    count(id, identity, what) {
      const isLast =
        last?.operation === identity.operation && last.caller === identity.caller && last.tenant === identity.tenant
      const busy = isLast ? last : busyOf(identity)
      if (busy === null) return
      busy[what]++
      if (what === 'claims') return
      let counts = records.get(id)
      if (counts === undefined) {
        if (records.size >= limits.tallyRows) return
        counts = { replays: 0, conflicts: 0, inProgress: 0, lastMs: 0 }
        records.set(id, counts)
      }
      counts[what]++
      counts.lastMs = runtime.monotonicMs()
    },
    whenCounted(given) {
      begin = given
      if (callers.size > 0) begin()
    },
    async flush() {
      if (callers.size === 0) return
      const now = runtime.monotonicMs()
      const rows = [...records].map(
        ([id, { lastMs, ...repeats }]): RecordTally => ({ id, ...repeats, lastAgoMs: Math.round(now - lastMs) }),
      )
      const tally = { records: rows, callers: [...callers.values()] }
      records = new Map()
      callers = new Map()
      last = null
      await store.upkeep.tally(tally, { timeoutMs: limits.storeCallMs })
    },
  }
}
