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
  /** Whatever its age, within its retention: for callers that the store does not answer. */
  known(id: RecordId): CachedReplay | null
  /** It may be answered as it is, if it is fresh; anything else must be read again first. */
  fresh(id: RecordId): CachedReplay | null
  /** All further replays of it get this value. */
  share(cached: CachedReplay, value: unknown): void
  /** `askedAt` is the monotonic time before the store was asked: an answer that took long is old when it comes. */
  put(record: Replayable, storeNow: number, askedAt: number): void
  /** Never fresh, because the store did not say it: only for callers that the store does not answer. */
  keep(record: Replayable, storeNow: number, askedAt: number): void
  drop(ids: readonly RecordId[] | null): void
}

interface Entry extends CachedReplay {
  shared: unknown
  readonly freshUntil: number
  readonly knownUntil: number
  bytes: number
}

const ENTRY_BYTES = 1_000

export function createReplayCache(runtime: Runtime): ReplayCache {
  /** Oldest first: a Map keeps the order of insertion, and every put inserts again. */
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

  function enter(record: Replayable, storeNow: number, askedAt: number, freshMostMs: number): void {
    remove(record.id)
    const size = ENTRY_BYTES + (record.outcome.data?.length ?? 0)
    if (size > limits.replayCacheBytes) return
    const lastsMs = record.expiresAt - storeNow
    const freshMs = Math.min(freshMostMs, lastsMs)
    const knownUntil = askedAt + lastsMs
    entries.set(record.id, { record, shared: undefined, freshUntil: askedAt + freshMs, knownUntil, bytes: size })
    bytes += size
    dropOldest()
  }

  return {
    get: (id) => entries.get(id) ?? null,
    known(id) {
      const entry = entries.get(id)
      return entry !== undefined && runtime.monotonicMs() < entry.knownUntil ? entry : null
    },
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
    put: (record, storeNow, askedAt) => enter(record, storeNow, askedAt, limits.replayCacheMs),
    keep: (record, storeNow, askedAt) => enter(record, storeNow, askedAt, 0),
    drop(ids) {
      if (ids !== null) for (const id of ids) remove(id)
      else {
        entries.clear()
        bytes = 0
      }
    },
  }
}
