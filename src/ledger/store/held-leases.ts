import { createLeaseClock } from '../../runtime/lease-clock.ts'
import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { limits } from '../core/limits.ts'

/** A lease as its holder knows it: over by the holder's own clock before the store gives it to another. */
export interface HeldLease<End> {
  /** Whether it lasts at least this much longer. A paused process finds its lease over before any timer fires. */
  lasts(ms?: number): boolean
  /** Why it ended; null while it lasts. */
  end(): End | null
  /** Fires when it ends before it is let go, with the end as the reason. */
  signal(): AbortSignal
  /** No further renewal; the lease is left to its end. */
  letGo(): void
}

export interface HeldLeasesOptions<T, Loss, End> {
  readonly runtime: Runtime
  /**
   * Renews one lease at the store within the given time. Resolves to null, or to how it was lost; rejects when the store
   * did not answer, and is called again by the next tick while the lease lasts.
   */
  renew(item: T, withinMs: number): Promise<Loss | null>
  /** The end of a lease: by the holder's own clock (`loss` is null), or as the store said. */
  endOf(item: T, loss: Loss | null): End
  /** Called once for a lease that ended before it was let go. */
  ended?(item: T, end: End, loss: Loss | null): void
  /** Renewals have begun to fail. Not called again before one of them has succeeded, however long the store is away. */
  failed?(error: unknown): void
  /** The store answers again; so many rounds of renewals had failed. */
  recovered?(failures: number): void
  /** The longest time between two looks at the clock, where a signal must fire soon after the end. */
  readonly tickMostMs?: number
}

export interface Term {
  /** By `nowMs`, before the request was sent: the lease cannot have begun earlier at the store. */
  readonly sentAtMs: number
  readonly leaseMs: number
  /** Not renewed beyond this time after `sentAtMs`. */
  readonly mostMs?: number
}

/** The leases that one process holds, on one timer: most are let go long before their first renewal. */
export interface HeldLeases<T, End> {
  /** The clock of leases. */
  nowMs(): number
  hold(item: T, term: Term): HeldLease<End>
  /** Renews every lease now; rejects when the store did not answer for one of them. */
  renewAll(): Promise<void>
  /** No further renewal. What is still held ends by its own deadline. */
  stop(): void
}

interface Held<T, End> {
  readonly item: T
  readonly leaseMs: number
  readonly lastRenewalMs: number
  deadlineMs: number
  renewAtMs: number
  renewing: boolean
  end: End | null
  /** Made when the signal is first asked for: most never are. */
  abort: AbortController | null
}

/** Often enough that a renewal which fails is tried several times before the lease ends. */
const TICKS_PER_LEASE = 20

export function createHeldLeases<T, Loss, End>(options: HeldLeasesOptions<T, Loss, End>): HeldLeases<T, End> {
  const { runtime } = options
  const held = new Set<Held<T, End>>()
  const nowMs = createLeaseClock(runtime)
  let timer: Timer | null = null
  let tickMs = options.tickMostMs ?? Number.POSITIVE_INFINITY
  let stopped = false
  /** Rounds of renewals that failed since the store last answered. */
  let failures = 0

  function arm(): void {
    if (timer !== null || held.size === 0) return
    timer = runtime.setTimer(tickMs, tick, true)
  }

  function tick(): void {
    timer = null
    const now = nowMs()
    const due: Held<T, End>[] = []
    for (const each of held) {
      if (now >= each.deadlineMs) end(each, null)
      else if (!stopped && now >= each.renewAtMs && now < each.lastRenewalMs && !each.renewing) due.push(each)
    }
    if (due.length > 0) void renewDue(due)
    arm()
  }

  async function renewDue(due: readonly Held<T, End>[]): Promise<void> {
    const errors: unknown[] = []
    await Promise.all(
      due.map(async (each) => {
        each.renewing = true
        // After a failure the next tick tries again, or ends the lease.
        await renew(each).catch((error: unknown) => errors.push(error))
        each.renewing = false
      }),
    )
    if (errors.length === 0) return
    failures += 1
    if (failures === 1) options.failed?.(errors[0])
  }

  function answered(): void {
    if (failures > 0) options.recovered?.(failures)
    failures = 0
  }

  async function renew(each: Held<T, End>): Promise<void> {
    const sentAtMs = nowMs()
    const loss = await options.renew(each.item, each.deadlineMs - sentAtMs)
    answered()
    // Let go or ended meanwhile: the answer means nothing any more.
    if (!held.has(each)) return
    if (loss !== null) {
      end(each, loss)
      return
    }
    // No further than the longest time: a probe that finds nothing after it believes that nothing will come.
    each.deadlineMs = Math.max(each.deadlineMs, Math.min(sentAtMs + each.leaseMs, each.lastRenewalMs))
    each.renewAtMs = sentAtMs + each.leaseMs * limits.heartbeatShare
  }

  function end(each: Held<T, End>, loss: Loss | null): void {
    if (each.end !== null) return
    const why = options.endOf(each.item, loss)
    each.end = why
    // One that was let go is over without a report: its work was done in time.
    if (held.delete(each)) options.ended?.(each.item, why, loss)
    each.abort?.abort(why)
  }

  return {
    nowMs,
    hold(item, { sentAtMs, leaseMs, mostMs = Number.POSITIVE_INFINITY }) {
      const each: Held<T, End> = {
        item,
        leaseMs,
        lastRenewalMs: sentAtMs + mostMs,
        deadlineMs: sentAtMs + leaseMs,
        renewAtMs: sentAtMs + leaseMs * limits.heartbeatShare,
        renewing: false,
        end: null,
        abort: null,
      }
      held.add(each)
      // The store has just granted it.
      answered()
      tickMs = Math.min(tickMs, leaseMs / TICKS_PER_LEASE)
      arm()
      return {
        lasts(ms = 0) {
          const now = nowMs()
          if (now >= each.deadlineMs) end(each, null)
          return each.end === null && now + ms < each.deadlineMs
        },
        end() {
          if (nowMs() >= each.deadlineMs) end(each, null)
          return each.end
        },
        signal() {
          if (each.abort === null) {
            each.abort = new AbortController()
            if (each.end !== null) each.abort.abort(each.end)
          }
          return each.abort.signal
        },
        letGo: () => void held.delete(each),
      }
    },
    async renewAll() {
      await Promise.all([...held].map(renew))
    },
    stop() {
      stopped = true
    },
  }
}
