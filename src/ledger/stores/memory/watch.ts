import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { wakesWaiters } from '../../core/record.ts'
import type { Wake, Watch } from '../../store/port.ts'
import { createWaiters } from '../../store/waiters.ts'

export interface Watchers {
  watch(wake: Wake): Watch
  /** Remembers a change with waiters; the waiters of one step are notified together, after the step. */
  changed(before: LedgerRecord | null, after: LedgerRecord | null): void
  stop(): void
}

export function createWatchers(): Watchers {
  const waiters = createWaiters()
  let ids: RecordId[] = []

  /** Later, as in every other store: a caller must never be called back from inside its own call. */
  function notify(): void {
    const changed = ids
    ids = []
    waiters.wake(changed)
  }

  return {
    watch: (wake) => ({ ready: Promise.resolve(), stop: waiters.add(wake) }),
    changed: (before, after) => {
      if (waiters.watches.size === 0 || !wakesWaiters(before, after)) return
      if (ids.length === 0) queueMicrotask(notify)
      ids.push((before as LedgerRecord).id)
    },
    stop: waiters.clear,
  }
}
