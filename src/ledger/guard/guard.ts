import { createListeners } from '../../runtime/listeners.ts'
import { checkEffect, checkLedger } from '../arguments.ts'
import type { Claimed, Lease } from '../claim.ts'
import { isOnceError } from '../core/errors.ts'
import { MINUTE, SECOND } from '../core/limits.ts'
import { checkOptions } from '../core/option-names.ts'
import type { Pointer } from '../core/record.ts'
import type { EffectContext } from '../effect-context.ts'
import { succeeded } from '../granted.ts'
import type { Ledger } from '../ledger.ts'
import { createBounded, isStoreFault } from './bounded.ts'
import { ANY_CALLER, type ContentPart, contentKey, contentPolicy, GUARD_PREFIX } from './content-key.ts'
import { type Content, createContents } from './contents.ts'

/**
 * Content-based deduplication outside of HTTP: a claim whose key is the content. Content is not identity: a wanted repeat
 * within the window is blocked, and an identical message after it is sent.
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

/** The context of a send that holds the lock on its content. */
export interface GuardedAttempt extends EffectContext {
  /** The original exists and has failed for certain. With `onFailed: 'allow'` its content may be sent again. */
  failed(): void
  /**
   * The content was sent before, without this lock: nothing is sent now, identical sends that wait are answered with that
   * original, and the lock is released, so that it does not begin a window of its own.
   */
  duplicateOf(original: Pointer, ageMs: number): void
}

export type Verdict<T> =
  | { readonly kind: 'sent'; readonly value: T }
  /**
   * The original as its sender attached it, or `{ type: 'unattached', id: hash }` where it attached nothing. `waited` when
   * it was found only while waiting.
   */
  | { readonly kind: 'duplicate'; readonly original: Pointer; readonly ageMs: number; readonly waited: boolean }
  /** The original is still in flight: refuse rather than risk a second send. */
  | { readonly kind: 'pending' }
  /** Sent without a lock, because the store of the locks is down. */
  | { readonly kind: 'unguarded'; readonly value: T }

export interface GuardOptions<M> {
  /** Keeps the locks. */
  readonly ledger: Ledger<unknown>
  /** Guards of one name share their contents, over all processes. */
  readonly name: string
  /** The parts that make two messages the same; the first is the tenant. A missing part is not an empty one. */
  readonly identity: (message: M) => readonly [tenant: string, ...rest: ContentPart[]]
  /** The window, in milliseconds from the claim of the first send. @default 15 minutes */
  readonly withinMs?: number
  /** How long a duplicate waits for an original in flight, in milliseconds. @default 3 seconds */
  readonly waitMs?: number
  /**
   * A failed original blocks its content for the window like any other; or the content may be sent again at once.
   * @default 'duplicate'
   */
  readonly onFailed?: 'duplicate' | 'allow'
  /** While the store of the locks is down or busy: send without a lock, or refuse. @default 'open' */
  readonly onStoreDown?: 'open' | 'closed'
  /** How long the store may be silent, in milliseconds, before it counts as down. @default its own deadline */
  readonly decideMs?: number
  /** The original of a send without a lock: a lock that is granted too late then stands for it. @default none */
  readonly originalOf?: (value: unknown) => Pointer | null
  /** Called with duplicates, and with errors of the store. @default none */
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

/** One call of `send`: the identity of its lock, and its events with message and hash. */
interface Sending<M> {
  readonly parts: { readonly tenant: string; readonly caller: string; readonly key: string }
  report(event: WithoutMessage<GuardEvent<M>>): void
}

type WithoutMessage<E> = E extends unknown ? Omit<E, 'message' | 'hash'> : never

type SendEffect<A, T> = (attempt: A) => Promise<T>

/** What the store decided about the lock, or that it is down. */
type Decision = Claimed | { readonly kind: 'down'; readonly error: unknown }

/** How a send ended. */
interface Ending {
  threw: boolean
  failed: boolean
  isDuplicate: boolean
  /** The lock stands for its original already. */
  isSettled: boolean
  /** The original that could not be attached in time. */
  unattached: Pointer | null
}

const guardOptions = {
  ledger: true,
  name: true,
  identity: true,
  withinMs: true,
  waitMs: true,
  onFailed: true,
  onStoreDown: true,
  decideMs: true,
  originalOf: true,
  on: true,
} satisfies Record<keyof GuardOptions<never>, true>

const WITHIN_MS = 15 * MINUTE
const WAIT_MS = 3 * SECOND
/** A lock whose end is not written would block its content for as long as its lease is renewed. */
const INSIST = { insist: true }
const WHILE_HELD = { whileHeld: true }

/**
 * Sends a content once within a window, where callers bring no key: in front of anything that sends.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createGuard } from 'onceonly/guard'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('once.db') })
 * const guard = createGuard({
 *   ledger: once,
 *   name: 'sms',
 *   identity: (message: { tenant: string; to: string; text: string }) => [message.tenant, message.to, message.text],
 * })
 * const verdict = await guard.send({ tenant: 'acme', to: '+4915112345678', text: 'Hi' }, async () => 'sent')
 * ```
 */
export function createGuard<M>(options: GuardOptions<M>): Guard<M> {
  checkOptions('createGuard', options, guardOptions)
  const { ledger, name, withinMs = WITHIN_MS, waitMs = WAIT_MS } = options
  checkLedger('createGuard', ledger)
  const lock = ledger.operation<null>({
    name: GUARD_PREFIX + name,
    effect: 'external',
    ...contentPolicy(withinMs),
    keep: 'outcome',
  })
  const bounded = createBounded(options.decideMs ?? null)
  const contents = createContents()
  const { emit } = createListeners(options.on)

  function sendingOf(message: M): Sending<M> {
    const parts = options.identity(message)
    const key = contentKey(parts)
    return {
      parts: { tenant: parts[0], caller: ANY_CALLER, key },
      report: (event) => emit({ ...event, message, hash: key } as GuardEvent<M>),
    }
  }

  /** Claims at once, and again within the wait while another sender makes the original. */
  async function decide(
    { parts, report }: Sending<M>,
    late: (claimed: Claimed) => void,
  ): Promise<{ readonly decision: Decision; readonly waited: boolean }> {
    async function claim(patienceMs: number): Promise<Decision> {
      try {
        const call = () => lock.claim(parts, null, { waitMs: patienceMs, claimsAgain: patienceMs === 0 })
        return await bounded.call(call, late, patienceMs)
      } catch (error) {
        if (!isStoreFault(error)) throw error
        report({ kind: 'error', error })
        return { kind: 'down', error }
      }
    }
    const first = await claim(0)
    if (first.kind !== 'in_progress' || first.pointer !== null) return { decision: first, waited: false }
    const seenAt = performance.now()
    const second = await claim(waitMs)
    if (second.kind !== 'down') return { decision: second, waited: true }
    // The last that is known is an original in flight, so nothing is sent beside it.
    return { decision: { ...first, ageMs: first.ageMs + since(seenAt) }, waited: true }
  }

  async function send<T>(message: M, effect: SendEffect<GuardedAttempt | null, T>): Promise<Verdict<T>> {
    checkEffect('send', effect)
    const sending = sendingOf(message)
    const { parts } = sending
    const startedAt = performance.now()
    for (let waited = false; ; waited = true) {
      // 1. The first of identical sends in this process asks the store.
      const content = contents.begin(parts.key)
      if (content !== null) {
        try {
          return await lead(sending, content, effect)
        } finally {
          content.end()
        }
      }
      // 2. The others wait for what it finds, as long as they would wait for another process.
      const found = await contents.wait(parts.key, startedAt + waitMs)
      const waitedMs = performance.now() - startedAt
      if (found !== null) {
        lock.noteRepeat(parts, 'replays')
        return blocked(sending, found.original, found.ageMs + since(found.atMs), waited || waitedMs >= 1)
      }
      if (waitedMs >= waitMs) {
        lock.noteRepeat(parts, 'inProgress')
        return pending(sending, Math.round(waitedMs))
      }
      // 3. It ended without an original: one of those that waited is first now.
    }
  }

  function blocked({ report }: Sending<M>, original: Pointer, ageMs: number, waited: boolean): Verdict<never> {
    const mode = waited ? 'lock_resolved_polled' : 'lock_resolved'
    report({ kind: 'blocked', mode, original, ageMs })
    return { kind: 'duplicate', original, ageMs, waited }
  }

  function pending({ report }: Sending<M>, ageMs: number): Verdict<never> {
    report({ kind: 'pending', ageMs })
    return { kind: 'pending' }
  }

  async function lead<T>(
    sending: Sending<M>,
    content: Content,
    effect: SendEffect<GuardedAttempt | null, T>,
  ): Promise<Verdict<T>> {
    const unguarded = Promise.withResolvers<Pointer | null>()
    try {
      const { decision, waited } = await decide(sending, (granted) => void adopt(granted, unguarded.promise))
      switch (decision.kind) {
        case 'down': {
          if (options.onStoreDown === 'closed') throw decision.error
          const value = await effect(null)
          const original = options.originalOf?.(value) ?? null
          unguarded.resolve(original)
          // Identical sends that wait in this process are duplicates of it, whatever the store knows.
          if (original !== null) content.found(original, 0)
          return { kind: 'unguarded', value }
        }
        case 'first_attempt':
        case 'reclaimed':
          return { kind: 'sent', value: await sendLocked(sending, decision.lease, content, effect) }
        default: {
          const { pointer: original, ageMs } = decision
          if (original === null) return pending(sending, ageMs)
          content.found(original, ageMs)
          return blocked(sending, original, ageMs, waited)
        }
      }
    } finally {
      unguarded.resolve(null)
    }
  }

  /** The lock is released when the send throws before the original exists; otherwise it is held for its window. */
  async function sendLocked<T>(
    sending: Sending<M>,
    lease: Lease,
    content: Content,
    effect: SendEffect<GuardedAttempt, T>,
  ): Promise<T> {
    const startedAt = performance.now()
    const ending: Ending = { threw: true, failed: false, isDuplicate: false, isSettled: false, unattached: null }
    const attempt: GuardedAttempt = Object.assign(lease, {
      failed: () => void (ending.failed = true),
      duplicateOf(original: Pointer, ageMs: number) {
        ending.isDuplicate = true
        content.found(original, ageMs)
      },
      async attach(pointer: Pointer) {
        try {
          // One write and no lease to renew: from here on the lock stands for the original, however the send ends.
          await bounded.write(() => lease.settle(succeeded(undefined, pointer), WHILE_HELD))
          Object.assign(lease, { pointer })
          ending.isSettled = true
          ending.unattached = null
          content.found(pointer, since(startedAt))
        } catch (error) {
          // The original exists, also where its lease has ended; only what is no pointer names nothing.
          if (isOnceError(error, 'bad_input')) throw error
          ending.unattached = pointer
          content.found(pointer, since(startedAt))
          throw error
        }
      },
    })
    try {
      const value = await effect(attempt)
      ending.threw = false
      return value
    } finally {
      // The send is over, and the guard never breaks it: what cannot be written now is written later.
      const written = end(sending, lease, ending).catch((error: unknown) => {
        if (!isOnceError(error)) sending.report({ kind: 'error', error })
      })
      // A store that did not take the original in time is not waited for again.
      if (ending.unattached === null) await bounded.write(() => written).catch(() => {})
    }
  }

  async function end({ parts, report }: Sending<M>, lease: Lease, ending: Ending): Promise<void> {
    const { threw, failed: hasFailed, isDuplicate, isSettled, unattached } = ending
    if (!isSettled) {
      if (hasFailed || isDuplicate || (threw && unattached === null)) return lease.release(INSIST)
      if (unattached === null) report({ kind: 'unattached' })
      await lease.settle(succeeded(undefined, unattached ?? { type: 'unattached', id: parts.key }), INSIST)
    }
    if (!hasFailed || options.onFailed !== 'allow') return
    // Forgotten, not released: the next send gets a new effect key. The fence protects a lock of another sender.
    await ledger.forget({ ...parts, operation: lock.name }, { by: 'guard', ifFence: lease.fence })
  }

  return {
    send,
    hashOf: (message) => contentKey(options.identity(message)),
    async release(which, by) {
      const { tenant, key } =
        'message' in which ? sendingOf(which.message).parts : { tenant: which.tenant, key: which.hash }
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

/** A lock that was granted too late stands for the original that was sent without it; without one it is released. */
async function adopt(claimed: Claimed, original: Promise<Pointer | null>): Promise<void> {
  if (claimed.kind !== 'first_attempt' && claimed.kind !== 'reclaimed') return
  const pointer = await original
  await (pointer === null ? claimed.lease.release(INSIST) : claimed.lease.settle(succeeded(undefined, pointer), INSIST))
}

function since(atMs: number): number {
  return Math.round(performance.now() - atMs)
}
