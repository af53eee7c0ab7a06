import { HOUR, MINUTE } from '../../ledger/core/limits.ts'
import { latencyBounds } from '../telemetry/instruments.ts'
import type { HistoryLine, LatencyLine } from './history.ts'

/** Latencies of a time; percentiles are null where the meter has no buckets. */
export interface LatencyPoint {
  readonly count: number
  readonly mean: number
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
}

/** One point of the charts, over all processes. */
export interface HistoryPoint {
  /** Where it begins. */
  readonly at: number
  readonly perSecond: Readonly<Record<string, number>>
  /** In milliseconds; null for what did not happen. */
  readonly latencyMs: Readonly<Record<string, LatencyPoint | null>>
  /** The highest of the time; what was not looked at is left out, because nothing happened. */
  readonly gauges: Readonly<Record<string, number>>
}

/** Each range has about a hundred points: more would fall on the same pixels. */
export const historyRanges = {
  '1h': { ms: HOUR, stepMs: MINUTE },
  '6h': { ms: 6 * HOUR, stepMs: 5 * MINUTE },
  '24h': { ms: 24 * HOUR, stepMs: 10 * MINUTE },
} as const

export type HistoryRange = keyof typeof historyRanges

/** Every point of the range, also those in which nothing happened. */
export function pointsOf(
  lines: readonly HistoryLine[],
  now: number,
  range: HistoryRange,
  bounds: readonly number[] = latencyBounds,
): readonly HistoryPoint[] {
  const { ms, stepMs } = historyRanges[range]
  const last = Math.floor(now / stepMs) * stepMs
  const byPoint = Map.groupBy(lines, ({ at }) => Math.floor(at / stepMs) * stepMs)
  const count = ms / stepMs
  return Array.from({ length: count }, (_, index) => {
    const at = last - (count - 1 - index) * stepMs
    // The last point is not over yet.
    const seconds = (at === last ? Math.max(MINUTE, now - at) : stepMs) / 1_000
    return pointOf(at, byPoint.get(at) ?? [], seconds, bounds)
  })
}

function pointOf(at: number, lines: readonly HistoryLine[], seconds: number, bounds: readonly number[]): HistoryPoint {
  const perSecond = combined(
    lines.map(({ counts }) => counts),
    (sum, each) => sum + each,
  )
  const names = new Set(lines.flatMap(({ latencies }) => Object.keys(latencies)))
  return {
    at,
    perSecond: Object.fromEntries(Object.entries(perSecond).map(([name, value]) => [name, value / seconds])),
    latencyMs: Object.fromEntries(
      [...names].map((name) => [
        name,
        latencyOf(
          lines.flatMap((line) => line.latencies[name] ?? []),
          bounds,
        ),
      ]),
    ),
    gauges: combined(
      lines.map(({ gauges }) => gauges),
      Math.max,
    ),
  }
}

function combined(
  all: readonly Readonly<Record<string, number>>[],
  combine: (before: number, each: number) => number,
): Readonly<Record<string, number>> {
  const result = new Map<string, number>()
  for (const [name, value] of all.flatMap((each) => Object.entries(each))) {
    result.set(name, combine(result.get(name) ?? 0, value))
  }
  return Object.fromEntries(result)
}

/** All of them together; null where there are none. */
export function latencyOf(
  lines: readonly LatencyLine[],
  bounds: readonly number[] = latencyBounds,
): LatencyPoint | null {
  const count = lines.reduce((sum, each) => sum + each.count, 0)
  if (count === 0) return null
  const buckets = Array.from({ length: bounds.length + 1 }, (_, at) =>
    lines.reduce((sum, each) => sum + (each.buckets[at] ?? 0), 0),
  )
  const share = (quantile: number) => percentile(buckets, bounds, quantile)
  const mean = lines.reduce((sum, each) => sum + each.sumMs, 0) / count
  return { count, mean, p50: share(0.5), p95: share(0.95), p99: share(0.99) }
}

/**
 * Inside of a bucket the values are taken as evenly spread, as Prometheus does; beyond the last bound only the bound is
 * known.
 *
 * @param bounds of the buckets, in seconds
 * @returns milliseconds
 */
export function percentile(buckets: readonly number[], bounds: readonly number[], quantile: number): number | null {
  const whole = buckets.reduce((sum, count) => sum + count, 0)
  if (whole === 0) return null
  const rank = quantile * whole
  let below = 0
  for (const [at, bound] of bounds.entries()) {
    const inside = buckets[at] ?? 0
    if (inside > 0 && below + inside >= rank) {
      const lower = bounds[at - 1] ?? 0
      return (lower + (bound - lower) * ((rank - below) / inside)) * 1_000
    }
    below += inside
  }
  return (bounds.at(-1) ?? 0) * 1_000
}
