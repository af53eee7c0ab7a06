import type { HistoryLine } from '../core/history.ts'
import { counters, histograms } from '../telemetry/instruments.ts'

/** The part of `createPrometheusMeter` that rates and latencies are made of. */
export interface Totalling {
  total(name: string): number
  /** How many values fell into each bucket of a histogram. Without it there are means and no percentiles. */
  buckets?(name: string): readonly number[]
}

/** What is counted, live and over time. */
const counted = {
  claims: counters.claims,
  replays: counters.replays,
  joined: counters.joined,
  inProgress: counters.inProgress,
  conflicts: counters.conflicts,
  guardBlocked: counters.guardBlocked,
  guardErrors: counters.guardErrors,
  losses: counters.losses,
  sagaFailures: counters.sagaFailures,
  backgroundFailures: counters.background,
} as const

const timed = { request: histograms.request, claim: histograms.claim, effect: histograms.effect } as const

export type Totals = Pick<HistoryLine, 'counts' | 'latencies'>

/** Since the process began. */
export function totalsOf(meter: Totalling): Totals {
  return {
    counts: Object.fromEntries(Object.entries(counted).map(([name, row]) => [name, meter.total(row.name)])),
    latencies: Object.fromEntries(
      Object.entries(timed).map(([name, row]) => [
        name,
        {
          count: meter.total(`${row.name}_count`),
          sumMs: meter.total(`${row.name}_sum`) * 1_000,
          buckets: meter.buckets?.(row.name) ?? [],
        },
      ]),
    ),
  }
}

/** What was added in between. */
export function since(before: Totals, after: Totals): Totals {
  return {
    counts: Object.fromEntries(
      Object.entries(after.counts).map(([name, value]) => [name, value - (before.counts[name] ?? 0)]),
    ),
    latencies: Object.fromEntries(
      Object.entries(after.latencies).map(([name, { count, sumMs, buckets }]) => {
        const old = before.latencies[name]
        const grown = buckets.map((value, at) => value - (old?.buckets[at] ?? 0))
        return [name, { count: count - (old?.count ?? 0), sumMs: sumMs - (old?.sumMs ?? 0), buckets: grown }]
      }),
    ),
  }
}
