import type { RecordId } from '../../core/identity.ts'
import { runningTwin } from '../../store/sql/transactions.ts'

/** What one transaction has done to records: who has to be woken after the commit, and which ids a twin would find. */
export interface Doings {
  readonly ids: Set<RecordId>
  readonly woken: RecordId[]
  /** The count of wakes before the first decision; null while there was none. */
  wakesBefore: number | null
  /** Topics of other rooms that it woke, where the connection cannot tell. */
  readonly topics: Set<string>
}

/** Transactions that are open in this process, by their records. */
export interface Twins {
  /** Until `leave`. Refused when one of the others is for this record, and the caller does not wait for twins. */
  enter(refuseTwinOf: RecordId | null): Doings
  leave(doings: Doings): void
}

export function createTwins(): Twins {
  const underWay = new Set<Doings>()
  return {
    enter: (id) => {
      // Only this process's transactions are known; one of another process is waited for like any other writer.
      for (const { ids } of underWay) if (id !== null && ids.has(id)) throw runningTwin()
      const doings: Doings = { ids: new Set(id === null ? [] : [id]), woken: [], wakesBefore: null, topics: new Set() }
      underWay.add(doings)
      return doings
    },
    leave: (doings) => void underWay.delete(doings),
  }
}
