import { createListeners } from '../../runtime/listeners.ts'
import { checkEffect, checkLedger } from '../arguments.ts'
import type { Claimed, Lease } from '../claim.ts'
import { failed, succeeded } from '../claim.ts'
import { isOnceError } from '../core/errors.ts'
import { MINUTE, SECOND } from '../core/limits.ts'
import type { Pointer } from '../core/record.ts'
import type { EffectContext } from '../effect-context.ts'
import type { Ledger } from '../ledger.ts'
import { createBounded, isStoreFault } from './bounded.ts'
import { ANY_CALLER, contentKey, contentPolicy, GUARD_PREFIX } from './content-key.ts'
import { type Content, createContents, type Found } from './contents.ts'

/**
 * For callers that send no key: a claim whose key *is* the content. Content is not identity: a wanted repeat within the
 * window is blocked, and an identical request after it is not.
 */
export interface Guard<M> {
  send<T>(message: M, effect: (attempt: GuardedAttempt | null) => Promise<T>): Promise<Verdict<T>>
  /** The lock's name for operators; equal content has an equal hash. */
  hashOf(message: M): string
  /** Frees a lock before its window ends, by content or by hash. False when there is none. */
  release(
    lock: { readonly message: M } | { readonly tenant: string; readonly hash: string },
    by?: string,
  ): Promise<boolean>
}

/** What a send is given under its lock. */
export interface GuardedAttempt extends EffectContext {
  /** The original exists, but came to nothing, for certain. Where failed ones allow it, the content is free again. */
  failed(): void
  /**
   * The content was sent before, without this lock: nothing is sent now, identical sends that wait are answered with that
   * original, and the lock is given back, so that it does not begin a window of its own.
   */
  duplicateOf(original: Pointer, ageMs: number): void
}

export type Verdict<T> =
  | { readonly kind: 'sent'; readonly value: T }
  /**
   * What stands under the lock: attached by its first sender, or `{ type: 'unattached', id: hash }` where that one
   * attached nothing. `waited` when it was found only while waiting.
   */
  | { readonly kind: 'duplicate'; readonly original: Pointer; readonly ageMs: number; readonly waited: boolean }
  /** The original is still in flight: refuse rather than risk a second send. */
  | { readonly kind: 'pending' }
  /** The store of the locks is away or busy, and the guard fails open. */
  | { readonly kind: 'unguarded'; readonly value: T }

export interface GuardOptions<M> {
  readonly ledger: Ledger<unknown>
  readonly name: string
  /** The parts that make two messages the same; the first is the tenant. A missing part is not an empty one. */
  readonly identity: (message: M) => readonly [tenant: string, ...rest: (string | null | undefined)[]]
  readonly windowMs?: number
  readonly waitMs?: number
  /** A failed original stands for its window like any other; or its content may be sent again, as soon as it failed. */
  readonly onFailed?: 'duplicate' | 'allow'
  /** Refuse instead of sending unguarded while the store of the locks is away or busy. */
  readonly failClosed?: boolean
  /** With the locks in a store of their own: how long that store may be silent. Unbounded, when left out. */
  readonly deadlineMs?: number
  /** Names the original that a send made without its lock, so that a lock that is granted late stands for it. */
  readonly originalOf?: (value: unknown) => Pointer | null
  readonly on?: (event: GuardEvent<M>) => void
}

export type GuardEvent<M> =
  | {
      readonly kind: 'blocked'
      readonly mode: 'lock_resolved' | 'lock_resolved_polled'
      readonly message: M
      readonly hash: string
      readonly original: Pointer
      readonly ageMs: number
    }
  | { readonly kind: 'pending'; readonly message: M; readonly hash: string; readonly ageMs: number }
  /** Sent, and nothing was attached: duplicates are blocked, but cannot be answered with the original. */
  | { readonly kind: 'unattached'; readonly message: M; readonly hash: string }
  | { readonly kind: 'error'; readonly message: M; readonly hash: string; readonly error: unknown }

/** How a send ended. */
interface Ending {
  threw: boolean
  /** By the effect's own word. */
  failed: boolean
  /** Likewise: the original is another send's. */
  isDuplicate: boolean
  /** The original that could not be attached to the lock in time. */
  untold: Pointer | null
}

/** The answer of the locks, or why there is none. */
type Asked = Claimed | { readonly kind: 'error'; readonly error: unknown }

const WINDOW_MS = 15 * MINUTE
const WAIT_MS = 3 * SECOND
/** A lock whose end is lost would keep its content from being sent, or from being found, for as long as it beats. */
const INSIST = { insist: true }

export function createGuard<M>(options: GuardOptions<M>): Guard<M> {
  const { ledger, name, windowMs = WINDOW_MS, waitMs = WAIT_MS } = options
  checkLedger('createGuard', ledger)
  const lock = ledger.operation<null>({
    name: GUARD_PREFIX + name,
    effect: 'external',
    ...contentPolicy(windowMs),
    keep: 'outcome',
  })
  const bounded = createBounded(options.deadlineMs ?? null)
  const contents = createContents()

  function partsOf(message: M): { tenant: string; caller: string; key: string } {
    const parts = options.identity(message)
    return { tenant: parts[0], caller: ANY_CALLER, key: contentKey(parts) }
  }

  const { emit: tell } = createListeners(options.on)

  async function ask(message: M, patienceMs: number, late: (claimed: Claimed) => void): Promise<Asked> {
    try {
      const claim = () => lock.claim(partsOf(message), null, { waitMs: patienceMs, claimsAgain: patienceMs === 0 })
      return await bounded.call(claim, late, patienceMs)
    } catch (error) {
      if (!isStoreFault(error)) throw error
      tell({ kind: 'error', message, hash: partsOf(message).key, error })
      return { kind: 'error', error }
    }
  }

  /** Asks at once, and again, within the wait, while another caller is making the original. */
  async function decide(
    message: M,
    late: (claimed: Claimed) => void,
  ): Promise<{ readonly claimed: Asked; readonly waited: boolean }> {
    const first = await ask(message, 0, late)
    if (first.kind !== 'in_progress' || first.pointer !== null) return { claimed: first, waited: false }
    const seenAt = performance.now()
    const second = await ask(message, waitMs, late)
    if (second.kind !== 'error') return { claimed: second, waited: true }
    // What was seen in flight is the last that we know: it may well become the original, so nothing is sent beside it.
    return { claimed: { ...first, ageMs: first.ageMs + Math.round(performance.now() - seenAt) }, waited: true }
  }

  async function send<T>(message: M, effect: (attempt: GuardedAttempt | null) => Promise<T>): Promise<Verdict<T>> {
    checkEffect('send', effect)
    const { key } = partsOf(message)
    const begunMs = performance.now()
    for (let waited = false; ; waited = true) {
      // 1. The first of identical sends in this process leads.
      const content = contents.begin(key)
      if (content !== null) {
        try {
          return await lead(message, content, effect)
        } finally {
          content.end()
        }
      }
      // 2. The others wait for what it finds, as long as they would wait for another process.
      const found = await contents.wait(key, begunMs + waitMs)
      const waitedMs = performance.now() - begunMs
      if (found !== null) {
        lock.noteRepeat(partsOf(message), 'replays')
        return blocked(message, found.original, ageOf(found), waited || waitedMs >= 1)
      }
      if (waitedMs >= waitMs) {
        lock.noteRepeat(partsOf(message), 'inProgress')
        return pending(message, Math.round(waitedMs))
      }
      // 3. It ended without an original: decided anew.
    }
  }

  function blocked(message: M, original: Pointer, ageMs: number, waited: boolean): Verdict<never> {
    const mode = waited ? 'lock_resolved_polled' : 'lock_resolved'
    tell({ kind: 'blocked', mode, message, hash: partsOf(message).key, original, ageMs })
    return { kind: 'duplicate', original, ageMs, waited }
  }

  function pending(message: M, ageMs: number): Verdict<never> {
    tell({ kind: 'pending', message, hash: partsOf(message).key, ageMs })
    return { kind: 'pending' }
  }

  async function lead<T>(
    message: M,
    content: Content,
    effect: (attempt: GuardedAttempt | null) => Promise<T>,
  ): Promise<Verdict<T>> {
    const late = Promise.withResolvers<Pointer | null>()
    const { claimed, waited } = await decide(message, (granted) => void adopt(granted, late.promise))
    switch (claimed.kind) {
      case 'error': {
        if (options.failClosed === true) {
          late.resolve(null)
          throw claimed.error
        }
        try {
          const value = await effect(null)
          const original = options.originalOf?.(value) ?? null
          late.resolve(original)
          // Those that wait in this process are duplicates of it, whatever the locks know.
          if (original !== null) content.found(original, 0)
          return { kind: 'unguarded', value }
        } finally {
          late.resolve(null)
        }
      }
      case 'first_attempt':
      case 'reclaimed':
        late.resolve(null)
        return { kind: 'sent', value: await under(message, claimed.lease, content, effect) }
      default: {
        late.resolve(null)
        const { pointer: original, ageMs } = claimed
        if (original === null) return pending(message, ageMs)
        content.found(original, ageMs)
        return blocked(message, original, ageMs, waited)
      }
    }
  }

  /** The lock is given back when the send throws before the original exists; otherwise it stays for its window. */
  async function under<T>(
    message: M,
    lease: Lease,
    content: Content,
    effect: (attempt: GuardedAttempt) => Promise<T>,
  ): Promise<T> {
    const begunMs = performance.now()
    const how: Ending = { threw: true, failed: false, isDuplicate: false, untold: null }
    const { attach } = lease
    const attempt: GuardedAttempt = Object.assign(lease, {
      failed: () => void (how.failed = true),
      duplicateOf(original: Pointer, ageMs: number) {
        how.isDuplicate = true
        content.found(original, ageMs)
      },
      async attach(pointer: Pointer) {
        try {
          await bounded.write(() => attach(pointer))
          how.untold = null
          content.found(pointer, Math.round(performance.now() - begunMs))
        } catch (error) {
          // The original exists, also where the lock stood still past its lease; only what is no pointer names nothing.
          if (!isOnceError(error, 'bad_input')) {
            how.untold = pointer
            content.found(pointer, Math.round(performance.now() - begunMs))
          }
          throw error
        }
      },
    })
    try {
      const value = await effect(attempt)
      how.threw = false
      return value
    } finally {
      // The send is over, and the guard never breaks it: what cannot be written now is written later.
      const ending = end(message, lease, how).catch((error: unknown) => {
        if (!isOnceError(error)) tell({ kind: 'error', message, hash: partsOf(message).key, error })
      })
      // Locks that did not get the original in time are not waited for again.
      if (how.untold === null) await bounded.write(() => ending).catch(() => {})
    }
  }

  async function end(message: M, lease: Lease, how: Ending): Promise<void> {
    const { threw, failed: hasFailed, isDuplicate, untold } = how
    const named = lease.pointer !== null
    if (!named && (hasFailed || isDuplicate || (threw && untold === null))) return lease.release(INSIST)
    const hash = partsOf(message).key
    if (!named && untold === null) tell({ kind: 'unattached', message, hash })
    const pointer = named ? null : (untold ?? { type: 'unattached', id: hash })
    await lease.settle(hasFailed ? failed(new Error('The original failed.')) : succeeded(undefined, pointer), INSIST)
    if (!hasFailed || options.onFailed !== 'allow') return
    // Forgotten rather than released, so that the next send has a new effect key: this one's is used up. The fence
    // protects a
    // lock that another caller has by now.
    await ledger.forget({ ...partsOf(message), operation: lock.name }, { by: 'guard', ifFence: lease.fence })
  }

  return {
    send,
    hashOf: (message) => partsOf(message).key,
    async release(which, by) {
      const { tenant, key } = 'message' in which ? partsOf(which.message) : { tenant: which.tenant, key: which.hash }
      try {
        await ledger.forget({ tenant, caller: ANY_CALLER, operation: lock.name, key }, by === undefined ? {} : { by })
        return true
      } catch (error) {
        if (isOnceError(error, 'not_found')) return false
        throw error
      }
    },
  }
}

/**
 * A lock that was granted after the wait for it ended belongs to the original that was sent without it; when none is known,
 * it is released.
 */
async function adopt(claimed: Claimed, original: Promise<Pointer | null>): Promise<void> {
  if (claimed.kind !== 'first_attempt' && claimed.kind !== 'reclaimed') return
  const pointer = await original
  await (pointer === null ? claimed.lease.release(INSIST) : claimed.lease.settle(succeeded(undefined, pointer), INSIST))
}

function ageOf({ ageMs, atMs }: Found): number {
  return ageMs + Math.round(performance.now() - atMs)
}
