import type { Runtime } from '../runtime/runtime.ts'
import type { OnceError } from './core/errors.ts'
import type { Note } from './core/record.ts'
import type { Grant, HolderDecision } from './core/request.ts'
import type { Declared } from './declared.ts'
import type { Ground } from './effect-context.ts'
import { leaseLost, leaseOver } from './effect-context.ts'
import type { Events } from './events.ts'
import type { Requests } from './requests.ts'
import type { HeldLease as Lease } from './store/held-leases.ts'
import { createHeldLeases } from './store/held-leases.ts'

/** The lease of a record as its holder sees it. */
export interface HeldLease extends Ground {
  /** No further heartbeat; the lease is left to its end. */
  letGo(): void
}

export interface Heart {
  /** The clock of leases. */
  now(): number
  /**
   * `sentAt` is the time by `now` before the claim was sent: the lease cannot have begun earlier at the store. `over` is
   * called when it ends before it is let go.
   */
  hold(op: Declared, grant: Grant, sentAt: number, over?: () => void): HeldLease
  stop(): void
}

type Lost = Extract<HolderDecision, { readonly kind: 'lease_lost' }>

/** The signal of an effect fires within this time after its lease is over. */
const TICK_MOST_MS = 250

/** The leases of a ledger's attempts: renewed through the store, reported as events. */
export function createHeart(requests: Requests, runtime: Runtime, events: Events): Heart {
  const leases = createHeldLeases<Attempt, Lost, OnceError>({
    runtime,
    tickMostMs: TICK_MOST_MS,
    async renew({ op: { leaseMs }, grant: { id, claimId, fence } }, withinMs) {
      const { decision } = await requests.apply({ kind: 'renew', id, claimId, fence, leaseMs }, withinMs)
      return decision.kind === 'lease_lost' ? decision : null
    },
    endOf: ({ op }, lost) => (lost === null ? leaseOver(op.name) : leaseLost(op.name, lost.state)),
    ended({ grant: { identity, fence }, over }, _error, lost) {
      if (lost === null) events.emit({ kind: 'lease_over', identity, fence })
      else events.emit({ kind: 'lease_lost', identity, fence, state: lost.state })
      over?.()
    },
  })

  return {
    now: leases.nowMs,
    hold(op, grant, sentAt, over) {
      const attempt = new Attempt(op, grant, over ?? null)
      attempt.lease = leases.hold(attempt, { sentAtMs: sentAt, leaseMs: op.leaseMs, mostMs: op.maxRunMs })
      return attempt
    },
    stop: () => leases.stop(),
  }
}

/** One attempt that holds a lease. */
class Attempt implements HeldLease {
  declare readonly op: Declared
  declare readonly grant: Grant
  declare readonly over: (() => void) | null
  declare noted: Note | undefined
  declare lease: Lease<OnceError>

  constructor(op: Declared, grant: Grant, over: (() => void) | null) {
    this.op = op
    this.grant = grant
    this.over = over
    this.noted = undefined
  }

  signal(): AbortSignal {
    // A paused process, or machine, finds its lease over before any timer could fire.
    this.lease.end()
    return this.lease.signal()
  }

  check(): void {
    const ended = this.lease.end()
    if (ended !== null) throw ended
  }

  letGo(): void {
    this.lease.letGo()
  }
}
