import { createLeaseClock } from '../runtime/lease-clock.ts'
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { Ground } from './attempt.ts'
import { leaseLost, leaseOver } from './attempt.ts'
import type { Batcher } from './batch.ts'
import type { OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { Grant } from './core/request.ts'
import type { Declared } from './declared.ts'
import type { Events } from './events.ts'

/** One lease as its holder sees it: renewed while it lives, over by the holder's own clock. */
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

interface Held {
  readonly op: Declared
  readonly grant: Grant
  /** Made when the effect first asks for its signal: most never do. */
  abort: AbortController | null
  readonly over: (() => void) | null
  readonly lastBeatAt: number
  deadline: number
  beatAt: number
  beating: boolean
  ended: OnceError | null
}

const TICK_MOST_MS = 250
const TICKS_PER_LEASE = 20

/** One timer for all leases of a ledger: most effects end long before their first heartbeat and never see it. */
export function createHeart(batcher: Batcher, runtime: Runtime, events: Events): Heart {
  const held = new Set<Held>()
  const clockMs = createLeaseClock(runtime)
  let timer: Timer | null = null
  let tickMs = TICK_MOST_MS
  let stopped = false

  function arm(): void {
    if (timer !== null || held.size === 0) return
    timer = runtime.setTimer(tickMs, tick, true)
  }

  function tick(): void {
    timer = null
    const now = clockMs()
    for (const each of held) {
      if (now >= each.deadline) end(each, leaseOver(each.grant.identity.operation))
      else if (!stopped && now >= each.beatAt && now < each.lastBeatAt && !each.beating) void beat(each)
    }
    arm()
  }

  async function beat(each: Held): Promise<void> {
    const { id, claimId, fence } = each.grant
    const { leaseMs } = each.op
    each.beating = true
    const sentAt = clockMs()
    try {
      const { decision } = await batcher.apply({ kind: 'renew', id, claimId, fence, leaseMs }, each.deadline - sentAt)
      // Settled or ended meanwhile: the store's answer to a beat means nothing any more.
      if (!held.has(each)) return
      if (decision.kind === 'lease_lost') {
        events.emit({ kind: 'lease_lost', identity: each.grant.identity, fence, state: decision.state })
        end(each, leaseLost(each.grant.identity.operation, decision.state))
        return
      }
      // No further than the longest duration: a probe that finds nothing after it believes that nothing will come.
      each.deadline = Math.min(sentAt + leaseMs, each.lastBeatAt)
      each.beatAt = sentAt + leaseMs * limits.heartbeatShare
    } catch {
      // The batcher tried until the deadline; the next tick tries again or ends the lease.
    } finally {
      each.beating = false
    }
  }

  function end(each: Held, why: OnceError): void {
    if (each.ended !== null) return
    each.ended = why
    held.delete(each)
    if (why.code === 'lease_over') {
      events.emit({ kind: 'lease_over', identity: each.grant.identity, fence: each.grant.fence })
    }
    each.over?.()
    each.abort?.abort(why)
  }

  return {
    now: clockMs,
    hold(op, grant, sentAt, over) {
      const each: Held = {
        op,
        grant,
        abort: null,
        over: over ?? null,
        lastBeatAt: sentAt + op.maxRunMs,
        deadline: sentAt + op.leaseMs,
        beatAt: sentAt + op.leaseMs * limits.heartbeatShare,
        beating: false,
        ended: null,
      }
      held.add(each)
      tickMs = Math.min(tickMs, op.leaseMs / TICKS_PER_LEASE)
      arm()
      return {
        grant,
        signal() {
          if (each.abort === null) {
            each.abort = new AbortController()
            if (each.ended !== null) each.abort.abort(each.ended)
          }
          return each.abort.signal
        },
        check() {
          // A paused process, or machine, finds its lease over before any timer could fire.
          if (each.ended === null && clockMs() >= each.deadline) end(each, leaseOver(op.name))
          if (each.ended !== null) throw each.ended
        },
        letGo: () => void held.delete(each),
      }
    },
    stop() {
      // No further heartbeat; but what still runs must learn when its lease is over.
      stopped = true
    },
  }
}
