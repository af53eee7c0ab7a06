import { isOnceError, OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Pointer } from '../core/record.ts'
import type { Grant, HolderDecision, Settlement } from '../core/request.ts'
import { backoffMs } from '../core/retry.ts'
import type { Batcher } from './batch.ts'
import type { Events } from './events.ts'
import type { Runtime } from './runtime.ts'
import { sleep } from './runtime.ts'

/** Writes outcomes. Recording is never mixed up with the effect: a failure to record is not a failed effect. */
export interface Settler {
  /**
   * Settles once. When the store does not answer, goes on in the background for minutes and answers `null`: the
   * caller gets its result all the same. `done` runs when it is over, either way.
   */
  settle(grant: Grant, to: Settlement, pointer: Pointer | null, done: () => void): Promise<HolderDecision | null>
  /** Gives back a claim whose effect never began. Never rejects: what cannot be released lapses. */
  release(grant: Pick<Grant, 'id' | 'identity' | 'claimId' | 'fingerprint' | 'policy'>): Promise<void>
  drain(): Promise<void>
}

const RETRY = { baseMs: 200, capMs: 10_000 }

export function createSettler(batcher: Batcher, runtime: Runtime, events: Events): Settler {
  const background = new Set<Promise<void>>()

  function track(work: Promise<void>): void {
    background.add(work)
    void work.finally(() => background.delete(work))
  }

  async function write(grant: Grant, to: Settlement, pointer: Pointer | null): Promise<HolderDecision> {
    const { decision } = await batcher.apply({ kind: 'settle', id: grant.id, grant, to, pointer })
    report(grant, to, decision)
    return decision
  }

  function report(grant: Grant, to: Settlement, decision: HolderDecision): void {
    const { identity, fence } = grant
    if (decision.kind === 'applied') {
      if (decision.recordLost) events.emit({ kind: 'record_lost', identity, fence })
      events.emit({ kind: 'settled', identity, state: to.state, attempt: grant.attempt })
      return
    }
    events.emit({ kind: 'lease_lost', identity, fence, state: decision.state })
    if (decision.conflict) events.emit({ kind: 'late_outcome_conflict', identity, fence, state: decision.state })
  }

  async function insist(grant: Grant, to: Settlement, pointer: Pointer | null): Promise<void> {
    const giveUpAt = runtime.monotonicMs() + limits.settleRetryMs
    for (let tries = 1; ; tries++) {
      await sleep(runtime, backoffMs(tries, RETRY, runtime.random()))
      try {
        await write(grant, to, pointer)
        return
      } catch (error) {
        const retrying =
          runtime.monotonicMs() < giveUpAt && isOnceError(error) && error.retryable && error.code !== 'stopped'
        events.emit({ kind: 'settle_failed', identity: grant.identity, error: asOnceError(error), retrying })
        if (!retrying) return
      }
    }
  }

  return {
    async settle(grant, to, pointer, done) {
      try {
        const decision = await write(grant, to, pointer)
        done()
        return decision
      } catch (error) {
        events.emit({ kind: 'settle_failed', identity: grant.identity, error: asOnceError(error), retrying: true })
        track(insist(grant, to, pointer).finally(done))
        return null
      }
    },
    release({ id, identity, claimId, fingerprint, policy }) {
      const released = batcher.apply({ kind: 'release', id, identity, claimId, fingerprint, policy }).then(
        () => undefined,
        (error: unknown) => events.emit({ kind: 'background_failed', what: 'release', error }),
      )
      track(released)
      return released
    },
    async drain() {
      await Promise.all(background)
    },
  }
}

function asOnceError(error: unknown): OnceError {
  return isOnceError(error) ? error : new OnceError('store_unavailable', 'Settling failed.', { cause: error })
}
