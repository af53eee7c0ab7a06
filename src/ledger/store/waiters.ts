import type { RecordId } from '../core/identity.ts'
import type { Wake } from './port.ts'

/** The watches of a store's records in this process. */
export interface Waiters {
  readonly watches: ReadonlySet<Wake>
  /** The function that it returns ends this watch alone: a function may watch twice. */
  add(wake: Wake): () => void
  /** Null stands for "any record may have changed". */
  wake(ids: readonly RecordId[] | null): void
  /** For changes of this process: a caller must never be called back from inside its own call. */
  wakeSoon(ids: readonly RecordId[] | null): void
  clear(): void
}

export function createWaiters(): Waiters {
  const wakes = new Set<Wake>()
  const wake = (ids: readonly RecordId[] | null) => {
    for (const each of wakes) each(ids)
  }
  return {
    watches: wakes,
    add(given) {
      const own: Wake = (ids) => given(ids)
      wakes.add(own)
      return () => void wakes.delete(own)
    },
    wake,
    wakeSoon: (ids) => queueMicrotask(() => wake(ids)),
    clear: () => wakes.clear(),
  }
}
