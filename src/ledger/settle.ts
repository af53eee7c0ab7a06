import type { Awaitable, Runtime } from '../runtime/runtime.ts'
import { sleep } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { Pointer } from './core/record.ts'
import type { Grant, HolderDecision, Settlement } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import type { Events } from './events.ts'
import type { HeldLease } from './lease.ts'
import type { Requests } from './requests.ts'

/** Writes outcomes. Recording is never mixed up with the effect: a failure to record is not a failed effect. */
export interface Settler {
  /**
   * Settles once. When the store does not answer, continues in the background for minutes and returns `null`: the caller gets
   * its result all the same. The lease is let go when it is over, either way. A promise only where the store is waited for.
   */
  settle(lease: HeldLease, to: Settlement, pointer: Pointer | null): Awaitable<HolderDecision | null>
  /** An explicit settle by the holder: reported as any other, but the holder has to repeat a failure. */
  write(grant: Grant, to: Settlement, pointer: Pointer | null): Promise<HolderDecision>
  /**
   * Gives back a claim whose effect never began. Returns after one try, never with an error; the rest continues in the
   * background, and what cannot be released at all lapses.
   */
  release(grant: Pick<Grant, 'id' | 'identity' | 'claimId' | 'fingerprint' | 'policy'>): Promise<void>
  drain(): Promise<void>
}

const RETRY = { baseMs: 200, capMs: 10_000 }

export function createSettler(requests: Requests, runtime: Runtime, events: Events): Settler {
  const background = new Set<Promise<void>>()

  function track(work: Promise<void>): void {
    background.add(work)
    void work.finally(() => background.delete(work))
  }

  async function write(grant: Grant, to: Settlement, pointer: Pointer | null): Promise<HolderDecision> {
    try {
      const { decision } = await requests.apply({ kind: 'settle', id: grant.id, grant, to, pointer })
      report(grant, to, decision)
      return decision
    } catch (error) {
      return await writeBare(grant, to, pointer, error)
    }
  }

  /** The store cannot hold the words. That the effect happened it can hold, and that must never be lost. */
  async function writeBare(grant: Grant, to: Settlement, pointer: Pointer | null, error: unknown) {
    const bare = isOnceError(error, 'row_refused') ? bareOf(to, pointer) : null
    if (bare === null || !isOnceError(error)) throw error
    events.emit({ kind: 'outcome_not_stored', identity: grant.identity, why: error.message })
    return await write(grant, bare, null)
  }

  /** When the store did not answer: the bare verdict where that helps, and else in the background for minutes. */
  async function settleLater(
    lease: HeldLease,
    to: Settlement,
    pointer: Pointer | null,
    refused: unknown,
  ): Promise<HolderDecision | null> {
    const { grant } = lease
    const { identity } = grant
    const failed = (error: OnceError, retrying: boolean) =>
      events.emit({ kind: 'settle_failed', identity, error, retrying })
    try {
      const decision = await writeBare(grant, to, pointer, refused)
      lease.letGo()
      return decision
    } catch (error) {
      failed(asOnceError(error), true)
      track(insist(() => write(grant, to, pointer), failed).finally(() => lease.letGo()))
      return null
    }
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

  /** In the background, for minutes; `failed` is called for every failed try. */
  async function insist(
    again: () => Promise<unknown>,
    failed: (error: OnceError, retrying: boolean) => void,
  ): Promise<void> {
    const giveUpAt = runtime.monotonicMs() + limits.settleRetryMs
    for (let tries = 1; ; tries++) {
      await sleep(runtime, backoffMs(tries, RETRY, runtime.random()))
      try {
        await again()
        return
      } catch (thrown) {
        const error = asOnceError(thrown)
        // A privilege that was revoked meanwhile may be granted again: the effect has happened, and is worth the wait.
        const mayComeBack = error.retryable || error.code === 'store_unavailable'
        const retrying = runtime.monotonicMs() < giveUpAt && mayComeBack && error.code !== 'stopped'
        failed(error, retrying)
        if (!retrying) return
      }
    }
  }

  return {
    write,
    settle(lease, to, pointer) {
      const { grant } = lease
      const applied = requests.apply({ kind: 'settle', id: grant.id, grant, to, pointer })
      const settled = ({ decision }: { readonly decision: HolderDecision }) => {
        report(grant, to, decision)
        lease.letGo()
        return decision
      }
      if (!(applied instanceof Promise)) return settled(applied)
      return applied.then(settled, (error: unknown) => settleLater(lease, to, pointer, error))
    },
    release({ id, identity, claimId, fingerprint, policy }) {
      const release = async () => requests.apply({ kind: 'release', id, identity, claimId, fingerprint, policy })
      const failed = (error: OnceError) => events.emit({ kind: 'background_failed', what: 'release', error })
      const released = release().then(
        () => undefined,
        (error: unknown) => {
          failed(asOnceError(error))
          track(insist(release, failed))
        },
      )
      track(released)
      return released
    },
    async drain() {
      // A task that ends may leave a successor.
      while (background.size > 0) await Promise.all(background)
    },
  }
}

/** The same verdict without a word of the user's; null when there was none. */
function bareOf(to: Settlement, pointer: Pointer | null): Settlement | null {
  switch (to.state) {
    case 'succeeded':
      if (to.outcome.data === null && pointer === null) return null
      return { ...to, outcome: { kept: 'not_stored', data: null } }
    case 'failed_terminal':
    case 'failed_retryable':
      return to.outcome.data === null ? null : { ...to, outcome: { kept: 'outcome', data: null } }
    case 'unknown':
      return to.reason === null ? null : { ...to, reason: null }
  }
}

function asOnceError(error: unknown): OnceError {
  return isOnceError(error) ? error : new OnceError('store_unavailable', 'Settling failed.', { cause: error })
}
