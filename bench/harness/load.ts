import type { Figures } from './figures.ts'
import { quantile } from './statistics.ts'
import { openTurns } from './turns.ts'

export interface Load {
  readonly callers: number
  readonly warmUpMs: number
  /** The warm-up lasts at least so many requests, where a store has to get under way first. */
  readonly warmUpRequests?: number | undefined
  /** Where one caller is measured, so many may warm up. */
  readonly warmUpCallers?: number | undefined
  /** How long requests are measured; what ends in this time counts. */
  readonly measureMs: number
  /** With a single caller that takes turns with the other side. */
  readonly slices?: Slices | undefined
  /** Ends the measurement sooner, where every request makes the store larger. */
  readonly mostRequests?: number | undefined
  /** One request, with a number of its own. */
  request(number: number): unknown
  /** CPU time, in milliseconds, of other processes that work for the requests. */
  readonly serverCpuMs?: (() => number) | undefined
}

/** The measurement in pieces, between which the other side has its own. */
export interface Slices {
  readonly count: number
  readonly ms: number
}

export interface Loaded {
  /** Everything that was requested, the warm-up included: so many effects and records there must be. */
  readonly requests: number
  readonly figures: Figures
}

/** A reading of the clocks; also the difference of two. */
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
  if (load.slices !== undefined) return await driveAlone(load, load.slices)
  const { warmUpRequests = 0 } = load
  const beginsAtMs = performance.now() + load.warmUpMs
  const latencies: number[] = []
  const span: { begin?: Moment; end?: Moment } = {}
  let requests = 0
  let ended = 0

  async function call(): Promise<void> {
    while (span.end === undefined) {
      const sentAtMs = performance.now()
      await load.request(requests++)
      const nowMs = performance.now()
      if (span.begin === undefined) {
        if (++ended >= warmUpRequests && nowMs >= beginsAtMs) span.begin = momentOf(load)
      } else if (span.end === undefined) {
        latencies.push(nowMs - sentAtMs)
        if (nowMs >= span.begin.atMs + load.measureMs || latencies.length === load.mostRequests)
          span.end = momentOf(load)
      }
    }
  }

  await Promise.all(Array.from({ length: load.callers }, call))
  if (span.begin === undefined || span.end === undefined) throw new Error('No request was measured.')
  return { requests, figures: figuresOf(latencies, between(span.begin, span.end)) }
}

/**
 * One caller, in slices. An fsync takes five times as long in one second as in the next, so that two rounds of seconds,
 * one after the other, meet different disks; slices of a fraction of a second meet the same.
 */
async function driveAlone(load: Load, slices: Slices): Promise<Loaded> {
  if (load.callers !== 1)
    throw new Error('Only a single caller can be interrupted without leaving another request unfinished.')
  using turns = openTurns()
  const latencies: number[] = []
  const spans: Moment[] = []
  let requests = 0

  async function run(forMs: number, atLeast: number, note: (tookMs: number) => void): Promise<void> {
    const startedMs = performance.now()
    for (let done = 0; done < atLeast || performance.now() < startedMs + forMs; done++) {
      const sentAtMs = performance.now()
      await load.request(requests++)
      note(performance.now() - sentAtMs)
    }
  }

  await turns.mine()
  // A service that runs for hours has compiled its code; a caller alone would take minutes to get there.
  const { warmUpCallers = 1, warmUpRequests = 1 } = load
  const share = Math.ceil(warmUpRequests / warmUpCallers)
  await Promise.all(Array.from({ length: warmUpCallers }, () => run(0, share, () => {})))
  await run(load.warmUpMs, 1, () => {})
  for (let slice = 0; slice < slices.count; slice++) {
    await turns.mine()
    const begin = momentOf(load)
    await run(slices.ms, 1, (tookMs) => latencies.push(tookMs))
    spans.push(between(begin, momentOf(load)))
  }
  // What is left to check and to close shall not disturb the other side's last slice.
  await turns.mine()
  const sum = (of: keyof Moment) => spans.reduce((total, span) => total + span[of], 0)
  const took = { atMs: sum('atMs'), cpuMs: sum('cpuMs'), serverCpuMs: sum('serverCpuMs') }
  return { requests, figures: figuresOf(latencies, took) }
}

function momentOf({ serverCpuMs }: Pick<Load, 'serverCpuMs'>): Moment {
  const { user, system } = process.cpuUsage()
  return { atMs: performance.now(), cpuMs: (user + system) / 1_000, serverCpuMs: serverCpuMs?.() ?? 0 }
}

function between(begin: Moment, end: Moment): Moment {
  return {
    atMs: end.atMs - begin.atMs,
    cpuMs: end.cpuMs - begin.cpuMs,
    serverCpuMs: end.serverCpuMs - begin.serverCpuMs,
  }
}

function figuresOf(latencies: readonly number[], took: Moment): Figures {
  const sorted = Float64Array.from(latencies).sort()
  return {
    requestsPerS: latencies.length / (took.atMs / 1_000),
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuUs: (took.cpuMs * 1_000) / latencies.length,
    ...(took.serverCpuMs > 0 ? { serverCpuUs: (took.serverCpuMs * 1_000) / latencies.length } : {}),
  }
}
