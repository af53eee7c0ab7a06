import type { Runtime } from '../runtime/runtime.ts'
import type { RecordId } from './core/identity.ts'
import { limits } from './core/limits.ts'
import type { FailedTerminal, Succeeded } from './core/record.ts'

export type Replayable = Succeeded | FailedTerminal

/** A settled outcome of a hot key. */
export interface CachedReplay {
  readonly record: Replayable
  /** Its value, where all replays share one; undefined until it is given to `share`. */
  readonly shared: unknown
}

/** Settled outcomes of hot keys, at most a second old, bounded in bytes. */
export interface ReplayCache {
  get(id: RecordId): CachedReplay | null
  /** It may be answered as it is, if it is fresh; anything else must be read again first. */
  fresh(id: RecordId): CachedReplay | null
  /** All further replays of it get this value. */
  share(cached: CachedReplay, value: unknown): void
  /** `askedAt` is the monotonic time before the store was asked: an answer that took long is old when it comes. */
  put(record: Replayable, storeNow: number, askedAt: number): void
  drop(ids: readonly RecordId[] | null): void
}

interface Entry extends CachedReplay {
  shared: unknown
  readonly freshUntil: number
  bytes: number
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

  function dropOldest(): void {
    for (const oldest of entries.keys()) {
      if (bytes <= limits.replayCacheBytes) break
      remove(oldest)
    }
  }

  return {
    get: (id) => entries.get(id) ?? null,
    fresh(id) {
      const entry = entries.get(id)
      return entry !== undefined && runtime.monotonicMs() < entry.freshUntil ? entry : null
    },
    share({ record }, value) {
      const entry = entries.get(record.id)
      if (entry === undefined || entry.record !== record || entry.shared !== undefined) return
      // The value itself, and what a route makes of it.
      const size = 2 * (record.outcome.data?.length ?? 0)
      entry.shared = value
      entry.bytes += size
      bytes += size
      dropOldest()
    },
    put(record, storeNow, askedAt) {
      remove(record.id)
      const size = ENTRY_BYTES + (record.outcome.data?.length ?? 0)
      if (size > limits.replayCacheBytes) return
      const freshMs = Math.min(limits.replayCacheMs, record.expiresAt - storeNow)
      entries.set(record.id, { record, shared: undefined, freshUntil: askedAt + freshMs, bytes: size })
      bytes += size
      dropOldest()
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
