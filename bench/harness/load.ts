import type { Figures } from './side.ts'
import { quantile } from './statistics.ts'

export interface Load {
  readonly callers: number
  readonly warmUpMs: number
  /** How long requests are measured; what ends in this time counts. */
  readonly measureMs: number
  /** Ends the measurement sooner, where every request makes the store larger. */
  readonly mostRequests?: number | undefined
  /** One request, with a number of its own. */
  request(number: number): unknown
  /** CPU time, in milliseconds, of whoever else works for the requests. */
  readonly serverCpuMs?: (() => number) | undefined
}

export interface Loaded {
  /** Everything that was requested, the warm-up included: so many effects and records there must be. */
  readonly requests: number
  readonly figures: Figures
}

interface Moment {
  readonly atMs: number
  readonly cpuMs: number
  readonly serverCpuMs: number
}

/**
 * A closed loop: every caller sends its next request when it has the answer to the last one. Time is read where a
 * request ends, and no timer is used, so that a side which keeps the event loop busy is measured as it is.
 */
export async function drive(load: Load): Promise<Loaded> {
  const beginsAtMs = performance.now() + load.warmUpMs
  const latencies: number[] = []
  const span: { begin?: Moment; end?: Moment } = {}
  let requests = 0

  async function call(): Promise<void> {
    while (span.end === undefined) {
      const sentAtMs = performance.now()
      await load.request(requests++)
      const nowMs = performance.now()
      if (span.begin === undefined) {
        if (nowMs >= beginsAtMs) span.begin = momentOf(load)
      } else if (span.end === undefined) {
        latencies.push(nowMs - sentAtMs)
        if (nowMs >= span.begin.atMs + load.measureMs || latencies.length === load.mostRequests)
          span.end = momentOf(load)
      }
    }
  }

  await Promise.all(Array.from({ length: load.callers }, call))
  if (span.begin === undefined || span.end === undefined) throw new Error('No request was measured.')
  return { requests, figures: figuresOf(latencies, span.begin, span.end) }
}

function momentOf({ serverCpuMs }: Load): Moment {
  const { user, system } = process.cpuUsage()
  return { atMs: performance.now(), cpuMs: (user + system) / 1_000, serverCpuMs: serverCpuMs?.() ?? 0 }
}

function figuresOf(latencies: readonly number[], begin: Moment, end: Moment): Figures {
  const sorted = Float64Array.from(latencies).sort()
  const serverCpuMs = end.serverCpuMs - begin.serverCpuMs
  return {
    requestsPerS: latencies.length / ((end.atMs - begin.atMs) / 1_000),
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuUs: ((end.cpuMs - begin.cpuMs) * 1_000) / latencies.length,
    ...(serverCpuMs > 0 ? { serverCpuUs: (serverCpuMs * 1_000) / latencies.length } : {}),
  }
}
