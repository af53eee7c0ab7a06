import { digestParts } from '../core/digest.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { MINUTE, SECOND } from '../core/limits.ts'
import type { Pointer } from '../core/record.ts'
import type { Attempt } from '../ledger/attempt.ts'
import type { Claimed, Lease } from '../ledger/claim.ts'
import { succeeded } from '../ledger/claim.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createBreaker } from './breaker.ts'

/**
 * For callers that send no key: a claim whose key *is* the content. Content is not identity: a wanted repeat within the
 * window is blocked, and an identical request after it is not.
 */
export interface Guard<M> {
  send<T>(message: M, effect: (attempt: Attempt | null) => Promise<T>): Promise<Verdict<T>>
  /** The lock's name for operators; equal content has an equal hash. */
  hashOf(message: M): string
  /** Frees a lock before its window ends, by content or by hash. False when there is none. */
  release(
    lock: { readonly message: M } | { readonly tenant: string; readonly hash: string },
    by?: string,
  ): Promise<boolean>
}

export type Verdict<T> =
  | { readonly kind: 'sent'; readonly value: T }
  /** What stands under the lock: attached by its first sender. `waited` when it was found only while waiting. */
  | { readonly kind: 'duplicate'; readonly original: Pointer; readonly ageMs: number; readonly waited: boolean }
  /** The original is still in flight: refuse rather than risk a second send. */
  | { readonly kind: 'pending' }
  /** The lock could not be asked, and the guard fails open. */
  | { readonly kind: 'unguarded'; readonly value: T }

export interface GuardOptions<M> {
  readonly ledger: Ledger<unknown>
  readonly name: string
  /** The parts that make two messages the same; the first is the tenant. A missing part is not an empty one. */
  readonly identity: (message: M) => readonly [tenant: string, ...rest: (string | null | undefined)[]]
  readonly windowMs?: number
  readonly waitMs?: number
  /** Refuse instead of sending unguarded when the locks cannot be asked. */
  readonly failClosed?: boolean
  /** With the locks in a store of their own: how long the lock call may take. Unbounded, when left out. */
  readonly deadlineMs?: number
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
  | { readonly kind: 'error'; readonly message: M; readonly hash: string; readonly error: unknown }

const WINDOW_MS = 15 * MINUTE
const WAIT_MS = 3 * SECOND
/** Locks belong to the content, whoever sends it. */
const ANY_CALLER = '*'
const PREFIX = 'guard.'

export function createGuard<M>(options: GuardOptions<M>): Guard<M> {
  const { ledger, name, windowMs = WINDOW_MS, waitMs = WAIT_MS } = options
  const lock = ledger.operation<null>({
    name: PREFIX + name,
    effect: 'external',
    retainMs: windowMs,
    retainFrom: 'claimed',
    // A holder that died before the original existed leaves the lock free; afterwards the original stands.
    onAbandoned: 'hold_attached',
    keep: 'outcome',
  })
  const breaker = createBreaker(options.deadlineMs ?? null)

  function partsOf(message: M): { tenant: string; caller: string; key: string } {
    const [tenant, ...rest] = options.identity(message)
    return { tenant, caller: ANY_CALLER, key: digestParts([tenant, ...rest.map((part) => part ?? null)]) }
  }

  async function ask(
    message: M,
    waits: number,
  ): Promise<Claimed | { readonly kind: 'error'; readonly error: unknown }> {
    try {
      return await breaker.call(() => lock.claim(partsOf(message), null, { waitMs: waits }), giveBackLate, waits)
    } catch (error) {
      options.on?.({ kind: 'error', message, hash: partsOf(message).key, error })
      return { kind: 'error', error }
    }
  }

  async function send<T>(message: M, effect: (attempt: Attempt | null) => Promise<T>): Promise<Verdict<T>> {
    const first = await ask(message, 0)
    const waits = first.kind === 'in_progress' && first.pointer === null
    const claimed = waits ? await ask(message, waitMs) : first
    const hash = partsOf(message).key
    switch (claimed.kind) {
      case 'error':
        if (options.failClosed === true) throw claimed.error
        return { kind: 'unguarded', value: await effect(null) }
      case 'first_attempt':
      case 'reclaimed':
        return { kind: 'sent', value: await under(claimed.lease, effect) }
      default: {
        const { pointer: original, ageMs } = claimed
        if (original === null) {
          options.on?.({ kind: 'pending', message, hash, ageMs })
          return { kind: 'pending' }
        }
        options.on?.({
          kind: 'blocked',
          mode: waits ? 'lock_resolved_polled' : 'lock_resolved',
          message,
          hash,
          original,
          ageMs,
        })
        return { kind: 'duplicate', original, ageMs, waited: waits }
      }
    }
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

/** The lock is given back when the send fails before the original exists; once it exists, it stays for its window. */
async function under<T>(lease: Lease, effect: (attempt: Attempt) => Promise<T>): Promise<T> {
  try {
    const value = await effect(lease)
    await quietly(lease.pointer === null ? lease.release() : lease.settle(succeeded()))
    return value
  } catch (error) {
    await quietly(lease.pointer === null ? lease.release() : lease.settle(succeeded()))
    throw error
  }
}

/** The send is over, and the guard never breaks it: what cannot be written lapses by itself. */
async function quietly(write: Promise<void>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!isOnceError(error) && !(error instanceof OnceError)) throw error
  }
}

/** A lock that was granted after we had stopped waiting for it must not block the next sender. */
function giveBackLate(claimed: Claimed): void {
  if (claimed.kind === 'first_attempt' || claimed.kind === 'reclaimed') void claimed.lease.release().catch(() => {})
}
