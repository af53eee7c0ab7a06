import type { Runtime } from '../runtime/runtime.ts'
import type { RecordId } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { FailedTerminal, Succeeded } from './core/record.ts'

export type Replayable = Succeeded | FailedTerminal

/** Settled outcomes of hot keys, at most a second old, bounded in bytes. */
export interface ReplayCache {
  /** `fresh` may be answered as it is; anything else must be read again first. */
  get(id: RecordId): { readonly record: Replayable; readonly fresh: boolean } | null
  /** `askedAt` is the monotonic time before the store was asked: an answer that took long is old when it comes. */
  put(record: Replayable, storeNow: number, askedAt: number): void
  drop(ids: readonly RecordId[] | null): void
}

interface Entry {
  readonly record: Replayable
  readonly freshUntil: number
  readonly bytes: number
}

const ENTRY_BYTES = 1_000

export function createReplayCache(runtime: Runtime): ReplayCache {
  /** Oldest first: a Map keeps the order of insertion, and every put inserts anew. */
  const entries = new Map<RecordId, Entry>()
  let bytes = 0

  function remove(id: RecordId): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    entries.delete(id)
    bytes -= entry.bytes
  }

  return {
    get(id) {
      const entry = entries.get(id)
      return entry === undefined ? null : { record: entry.record, fresh: runtime.monotonicMs() < entry.freshUntil }
    },
    put(record, storeNow, askedAt) {
      remove(record.id)
      const size = ENTRY_BYTES + (record.outcome.data?.length ?? 0)
      if (size > limits.replayCacheBytes) return
      const freshMs = Math.min(limits.replayCacheMs, record.expiresAt - storeNow)
      entries.set(record.id, { record, freshUntil: askedAt + freshMs, bytes: size })
      bytes += size
      for (const oldest of entries.keys()) {
        if (bytes <= limits.replayCacheBytes) break
        remove(oldest)
      }
    },
    drop(ids) {
      if (ids !== null) for (const id of ids) remove(id)
      else {
        entries.clear()
        bytes = 0
      }
    },
  }
}
