import type { Awaitable, Runtime } from '../runtime/runtime.ts'
import { sleep } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits } from './core/limits.ts'
import type { Pointer } from './core/record.ts'
import type { DecisionOf, Grant, HolderDecision, Request, Settlement } from './core/request.ts'
import { backoffMs } from './core/retry.ts'
import { inDoubt } from './doubt.ts'
import type { Events } from './events.ts'
import type { AppliedDecision, Claims } from './store/port.ts'

/** Sends requests to the store, and repeats those that are safe to repeat until their deadline. */
export interface Requests {
  /** A promise only where the store has to be waited for. Never throws: what fails at once is repeated, too. */
  apply<R extends Request>(request: R, timeoutMs?: number): Awaitable<AppliedDecision<DecisionOf<R>>>
  /** Resolves when nothing is under way. */
  drain(): Promise<void>
}

/** A request that failed at least once. */
interface Failed {
  readonly request: Request
  /** By the runtime's monotonic clock. */
  readonly deadline: number
  tries: number
  /** An earlier try may have taken effect. */
  indeterminate: boolean
}

const RETRY = { baseMs: 20, capMs: 1_000 }
/** Tries of a request that the store refused for certain: a store that is down is reported soon, not after a minute. */
const TRIES_WHEN_NOT_APPLIED = 4
const CALL = { timeoutMs: limits.storeCallMs }

export function createRequests(claims: Claims, runtime: Runtime): Requests {
  const idle: (() => void)[] = []
  let underWay = 0

  function wake(): void {
    for (const each of idle.splice(0)) each()
  }

  function answered<T>(applied: T): T {
    underWay--
    if (underWay === 0 && idle.length > 0) wake()
    return applied
  }

  async function repeat<R extends Request>(request: R, deadline: number, error: unknown) {
    const failed: Failed = { request, deadline, tries: 0, indeterminate: false }
    try {
      for (let fault = asStoreError(error); ; ) {
        await pause(failed, fault)
        try {
          return await claims.apply(request, { timeoutMs: deadline - runtime.monotonicMs() })
        } catch (again) {
          fault = asStoreError(again)
        }
      }
    } finally {
      answered(null)
    }
  }

  /** Throws when the request must not be repeated, or not in time. */
  async function pause(failed: Failed, fault: OnceError): Promise<void> {
    failed.tries++
    if (fault.applied === 'maybe') failed.indeterminate = true
    const pauseMs = backoffMs(failed.tries, RETRY, runtime.random())
    if (runtime.monotonicMs() + pauseMs >= failed.deadline || !mayRepeat(failed, fault)) {
      throw failed.indeterminate ? inDoubt(fault) : fault
    }
    await sleep(runtime, pauseMs)
  }

  return {
    apply: <R extends Request>(request: R, timeoutMs: number = limits.storeCallMs) => {
      const deadline = runtime.monotonicMs() + timeoutMs
      const call = timeoutMs === limits.storeCallMs ? CALL : { timeoutMs }
      try {
        const applied = claims.apply(request, call)
        // Not asked whether it is a promise: one of another realm, as under Jest, is no instance of ours.
        if ('decision' in applied) return applied
        underWay++
        return Promise.resolve(applied).then(answered<AppliedDecision<DecisionOf<R>>>, (error: unknown) =>
          repeat(request, deadline, error),
        )
      } catch (error) {
        underWay++
        return repeat(request, deadline, error)
      }
    },
    drain: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => void idle.push(resolve))),
  }
}

/**
 * Most requests carry a claim id and may be repeated whatever happened; a person's actions may not. A busy store has
 * repeated the request itself, or has no room for it.
 */
function mayRepeat({ request: { kind }, tries }: Failed, fault: OnceError): boolean {
  if (!fault.retryable || fault.code === 'stopped' || fault.code === 'store_busy') return false
  if (fault.applied === 'no') return tries < TRIES_WHEN_NOT_APPLIED
  return kind !== 'resolve' && kind !== 'forget'
}

function asStoreError(error: unknown): OnceError {
  if (isOnceError(error)) return error
  return new OnceError('store_unavailable', 'The store failed in an unforeseen way.', {
    cause: error,
    applied: 'maybe',
  })
}

/** An attempt in the hands of its holder. */
interface Holding {
  readonly grant: Grant
  readonly lease: { letGo(): void }
}

/** Writes outcomes. Recording is never mixed up with the effect: a failure to record is not a failed effect. */
export interface Settler {
  /**
   * Settles once. When the store does not answer, continues in the background for minutes and returns `null`: the caller gets
   * its result all the same. The lease is let go when it is over, either way. A promise only where the store is waited for.
   */
  settle(attempt: Holding, to: Settlement, pointer: Pointer | null): Awaitable<HolderDecision | null>
  /** An explicit settle by the holder: reported as any other, but the holder has to repeat a failure. */
  write(grant: Grant, to: Settlement, pointer: Pointer | null): Promise<HolderDecision>
  /**
   * Gives back a claim whose effect never began. Returns after one try, never with an error; the rest continues in the
   * background, and what cannot be released at all lapses.
   */
  release(grant: Pick<Grant, 'id' | 'identity' | 'claimId' | 'fingerprint' | 'policy'>): Promise<void>
  drain(): Promise<void>
}

const SETTLE_RETRY = { baseMs: 200, capMs: 10_000 }

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

  async function settledThen(
    attempt: Holding,
    to: Settlement,
    pointer: Pointer | null,
    applied: Promise<AppliedDecision<HolderDecision>>,
  ): Promise<HolderDecision | null> {
    let decision: HolderDecision
    try {
      decision = (await applied).decision
    } catch (error) {
      return await settleLater(attempt, to, pointer, error)
    }
    report(attempt.grant, to, decision)
    attempt.lease.letGo()
    return decision
  }

  /** When the store did not answer: the bare verdict where that helps, and else in the background for minutes. */
  async function settleLater(
    attempt: Holding,
    to: Settlement,
    pointer: Pointer | null,
    refused: unknown,
  ): Promise<HolderDecision | null> {
    const { grant } = attempt
    const { identity } = grant
    const failed = (error: OnceError, retrying: boolean) =>
      events.emit({ kind: 'settle_failed', identity, error, retrying })
    try {
      const decision = await writeBare(grant, to, pointer, refused)
      attempt.lease.letGo()
      return decision
    } catch (error) {
      failed(asOnceError(error), true)
      track(insist(() => write(grant, to, pointer), failed).finally(() => attempt.lease.letGo()))
      return null
    }
  }

  function report(grant: Grant, to: Settlement, decision: HolderDecision): void {
    const { identity, fence } = grant
    if (decision.kind === 'applied') {
      if (decision.recordLost) events.emit({ kind: 'record_lost', identity, fence })
      if (events.isHeard) events.emit({ kind: 'settled', identity, state: to.state, attempt: grant.attempt })
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
      await sleep(runtime, backoffMs(tries, SETTLE_RETRY, runtime.random()))
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
    settle(attempt, to, pointer) {
      const { grant } = attempt
      const applied = requests.apply({ kind: 'settle', id: grant.id, grant, to, pointer })
      if (applied instanceof Promise) return settledThen(attempt, to, pointer, applied)
      report(grant, to, applied.decision)
      attempt.lease.letGo()
      return applied.decision
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
