import { limits } from '../../core/limits.ts'
import type { BusyCaller } from '../../store/port.ts'
import type { Time } from './clock.ts'

/** Requests by caller, in buckets of time: enough for questions about the last hours. */
export interface CallerStatistics {
  add(callers: readonly BusyCaller[]): void
  busiest(since: number, limit: number): readonly BusyCaller[]
}

type Bucket = Map<string, BusyCaller>

export function createCallerStatistics(time: Time): CallerStatistics {
  const buckets = new Map<number, Bucket>()

  function dropOld(now: number): void {
    for (const start of buckets.keys()) if (start + limits.tallyKeepMs <= now) buckets.delete(start)
  }

  return {
    add: (callers) => {
      const now = time.nowMs()
      dropOld(now)
      const start = now - (now % limits.tallyBucketMs)
      const bucket: Bucket = buckets.get(start) ?? new Map()
      buckets.set(start, bucket)
      for (const caller of callers) addTo(bucket, caller)
    },
    busiest: (since, limit) => {
      const sum: Bucket = new Map()
      for (const [start, bucket] of buckets) {
        // A bucket counts when any part of it is recent enough.
        if (start + limits.tallyBucketMs > since) for (const caller of bucket.values()) addTo(sum, caller)
      }
      return [...sum.values()].toSorted((a, b) => totalOf(b) - totalOf(a)).slice(0, limit)
    },
  }
}

function addTo(
  bucket: Bucket,
  { tenant, caller, operation, claims, replays, conflicts, inProgress }: BusyCaller,
): void {
  const name = JSON.stringify([tenant, caller, operation])
  const old = bucket.get(name) ?? { claims: 0, replays: 0, conflicts: 0, inProgress: 0 }
  bucket.set(name, {
    tenant,
    caller,
    operation,
    claims: old.claims + claims,
    replays: old.replays + replays,
    conflicts: old.conflicts + conflicts,
    inProgress: old.inProgress + inProgress,
  })
}

function totalOf({ claims, replays, conflicts, inProgress }: BusyCaller): number {
  return claims + replays + conflicts + inProgress
}
