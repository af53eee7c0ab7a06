import type { Runtime, Timer } from '../../runtime/runtime.ts'
import { createLeaseClock } from '../../runtime/runtime.ts'
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

/** Often enough that a renewal which fails is tried several times before the lease ends. */
const TICKS_PER_LEASE = 20
/** A timer of Node's may fire a part of a millisecond early. */
const EARLY_MS = 1

export function createHeldLeases<T, Loss, End>(options: HeldLeasesOptions<T, Loss, End>): HeldLeases<T, End> {
  return new Leases(options)
}

/**
 * The leases form a ring through their own fields: an entry in a `Set` for each request makes every collection of garbage
 * dearer, because tables that were outgrown keep what they held.
 */
class Leases<T, Loss, End> implements HeldLeases<T, End> {
  readonly nowMs: () => number
  readonly #options: HeldLeasesOptions<T, Loss, End>
  readonly #ring = new Held<T, Loss, End>(this, null as T, { sentAtMs: 0, leaseMs: 0 }, null)
  #timer: Timer | null = null
  #firesAtMs = Number.POSITIVE_INFINITY
  /** The shortest time between two looks: what is due soon after each other is renewed together. */
  #tickMs: number
  #stopped = false
  /** Rounds of renewals that failed since the store last answered. */
  #failures = 0

  constructor(options: HeldLeasesOptions<T, Loss, End>) {
    this.#options = options
    this.nowMs = createLeaseClock(options.runtime)
    this.#tickMs = options.tickMostMs ?? Number.POSITIVE_INFINITY
  }

  hold(item: T, term: Term): HeldLease<End> {
    const held = new Held<T, Loss, End>(this, item, term, this.#ring)
    // The store has just granted it.
    if (this.#failures > 0) this.#answered()
    this.#tickMs = Math.min(this.#tickMs, term.leaseMs / TICKS_PER_LEASE)
    if (held.renewAtMs < this.#firesAtMs) this.#armFor(held.renewAtMs)
    return held
  }

  async renewAll(): Promise<void> {
    await Promise.all(this.#held().map((each) => this.#renew(each)))
  }

  stop(): void {
    this.#stopped = true
  }

  end(held: Held<T, Loss, End>, loss: Loss | null): void {
    if (held.why !== null) return
    const why = this.#options.endOf(held.item, loss)
    held.why = why
    // One that was let go is over without a report: its work was done in time.
    const wasHeld = held.next !== null
    held.letGo()
    if (wasHeld) this.#options.ended?.(held.item, why, loss)
    held.abort?.abort(why)
  }

  #held(): Held<T, Loss, End>[] {
    const all: Held<T, Loss, End>[] = []
    for (let each = this.#ring.next; each !== this.#ring && each !== null; each = each.next) all.push(each)
    return all
  }

  /** For the next lease that is to be renewed, or that ends. */
  #arm(): void {
    const now = this.nowMs()
    let next = Number.POSITIVE_INFINITY
    for (const each of this.#held()) next = Math.min(next, this.#isOver(each, now) ? each.deadlineMs : each.renewAtMs)
    this.#armFor(next)
  }

  #armFor(atMs: number): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#firesAtMs = atMs
    if (atMs === Number.POSITIVE_INFINITY) return
    const { runtime, tickMostMs = Number.POSITIVE_INFINITY } = this.#options
    const waitMs = Math.min(tickMostMs, Math.max(this.#tickMs, atMs - this.nowMs()))
    this.#timer = runtime.setTimer(waitMs, () => this.#tick(), true)
  }

  /** Nothing is left to do but to end it in time: its renewal is under way, or there are no more. */
  #isOver(each: Held<T, Loss, End>, now: number): boolean {
    return this.#stopped || each.renewing || now >= each.lastRenewalMs
  }

  #tick(): void {
    const now = this.nowMs()
    const due: Held<T, Loss, End>[] = []
    for (const each of this.#held()) {
      if (now >= each.deadlineMs) this.end(each, null)
      else if (now >= each.renewAtMs - EARLY_MS && !this.#isOver(each, now)) due.push(each)
    }
    if (due.length > 0) void this.#renewDue(due)
    this.#arm()
  }

  async #renewDue(due: readonly Held<T, Loss, End>[]): Promise<void> {
    const errors: unknown[] = []
    await Promise.all(
      due.map(async (each) => {
        each.renewing = true
        // After a failure the next tick tries again, or ends the lease.
        await this.#renew(each).catch((error: unknown) => errors.push(error))
        each.renewing = false
      }),
    )
    this.#arm()
    if (errors.length === 0) return
    this.#failures += 1
    if (this.#failures === 1) this.#options.failed?.(errors[0])
  }

  #answered(): void {
    if (this.#failures > 0) this.#options.recovered?.(this.#failures)
    this.#failures = 0
  }

  async #renew(each: Held<T, Loss, End>): Promise<void> {
    const sentAtMs = this.nowMs()
    const loss = await this.#options.renew(each.item, each.deadlineMs - sentAtMs)
    this.#answered()
    // Let go or ended meanwhile: the answer means nothing any more.
    if (each.next === null) return
    if (loss !== null) {
      this.end(each, loss)
      return
    }
    // No further than the longest time: a probe that finds nothing after it believes that nothing will come.
    each.deadlineMs = Math.max(each.deadlineMs, Math.min(sentAtMs + each.leaseMs, each.lastRenewalMs))
    each.renewAtMs = sentAtMs + each.leaseMs * limits.heartbeatShare
  }
}

class Held<T, Loss, End> implements HeldLease<End> {
  declare readonly item: T
  declare readonly leaseMs: number
  declare readonly lastRenewalMs: number
  declare deadlineMs: number
  declare renewAtMs: number
  declare renewing: boolean
  declare why: End | null
  /** Made when the signal is first asked for: most never are. */
  declare abort: AbortController | null
  /** The ring of all that are held; null outside of it. */
  declare next: Held<T, Loss, End> | null
  declare private previous: Held<T, Loss, End> | null
  declare private readonly leases: Leases<T, Loss, End>

  /** Enters the ring, at its end. */
  constructor(
    leases: Leases<T, Loss, End>,
    item: T,
    { sentAtMs, leaseMs, mostMs = Number.POSITIVE_INFINITY }: Term,
    ring: Held<T, Loss, End> | null,
  ) {
    this.item = item
    this.leaseMs = leaseMs
    this.lastRenewalMs = sentAtMs + mostMs
    this.deadlineMs = sentAtMs + leaseMs
    this.renewAtMs = sentAtMs + leaseMs * limits.heartbeatShare
    this.leases = leases
    this.renewing = false
    this.why = null
    this.abort = null
    const last = ring?.previous ?? ring
    this.next = ring
    this.previous = last
    if (ring === null || last === null) return
    last.next = this
    ring.previous = this
  }

  lasts(ms = 0): boolean {
    const now = this.leases.nowMs()
    if (now >= this.deadlineMs) this.leases.end(this, null)
    return this.why === null && now + ms < this.deadlineMs
  }

  end(): End | null {
    if (this.leases.nowMs() >= this.deadlineMs) this.leases.end(this, null)
    return this.why
  }

  signal(): AbortSignal {
    if (this.abort === null) {
      this.abort = new AbortController()
      if (this.why !== null) this.abort.abort(this.why)
    }
    return this.abort.signal
  }

  letGo(): void {
    if (this.next === null || this.previous === null) return
    this.previous.next = this.next
    this.next.previous = this.previous
    this.next = null
    this.previous = null
  }
}
