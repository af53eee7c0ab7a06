import type { Runtime, Timer } from '../runtime/runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import type { RecordId } from './core/identity.ts'
import { limits, SECOND } from './core/limits.ts'
import type { LedgerRecord } from './core/record.ts'
import type { Claims, Watch } from './store/port.ts'

/** Waiting for attempts of others. Notifications are hints: a waiter also reads again by itself, ever more slowly. */
export interface Joiners {
  /**
   * Until the record is not in progress any more, its lease has lapsed, or, where that is enough, a pointer is attached.
   * Null when the deadline came first.
   */
  settled(id: RecordId, deadline: number, orAttached?: boolean): Promise<Change | null>
  /** Bounds all waiters in this process. */
  counted<T>(work: () => Promise<T>): Promise<T>
  stop(): void
}

export interface Change {
  readonly record: LedgerRecord | null
  readonly now: number
  /** The monotonic time before the store was asked; null where what it said may still be undone. */
  readonly askedAt: number | null
}

/** A watch is kept for a while after the last waiter left: the next one often comes soon. */
const LINGER_MS = 10 * SECOND
const CROWDED_RETRY_MS = 1 * SECOND

export function createJoiners(
  claims: Claims,
  runtime: Runtime,
  changed: (ids: readonly RecordId[] | null) => void,
): Joiners {
  const sleepers = new Map<RecordId, Set<() => void>>()
  let watch: Watch | null = null
  let count = 0
  let lingering: Timer | null = null

  function wake(ids: readonly RecordId[] | null): void {
    changed(ids)
    for (const id of ids ?? [...sleepers.keys()]) rouse(id)
  }

  function rouse(id: RecordId): void {
    for (const up of sleepers.get(id) ?? []) up()
  }

  function watching(): Watch {
    watch ??= claims.watch(wake)
    return watch
  }

  function linger(): void {
    lingering?.cancel()
    lingering = runtime.setTimer(
      LINGER_MS,
      () => {
        if (count > 0) return
        watch?.stop()
        watch = null
      },
      true,
    )
  }

  /** Sleeps until woken or until the time has passed. */
  function nap(id: RecordId, ms: number): { readonly over: Promise<void>; wake(): void } {
    const set = sleepers.get(id) ?? new Set()
    sleepers.set(id, set)
    let up: () => void = () => {}
    const over = new Promise<void>((resolve) => {
      const timer = runtime.setTimer(ms, () => up(), false)
      up = () => {
        timer.cancel()
        set.delete(up)
        // Called twice it must not send away those who sleep there by now.
        if (set.size === 0 && sleepers.get(id) === set) sleepers.delete(id)
        resolve()
      }
      set.add(up)
    })
    return { over, wake: () => up() }
  }

  async function settled(id: RecordId, deadline: number, orAttached: boolean): Promise<Change | null> {
    await hearing(id, deadline)
    for (let pollMs: number = limits.joinPollBaseMs; ; pollMs = Math.min(2 * pollMs, limits.joinPollCapMs)) {
      const leftMs = deadline - runtime.monotonicMs()
      // Asleep before reading, so that a wake between the read and the sleep is not lost.
      const rest = nap(id, Math.max(0, Math.min(pollMs, leftMs)))
      const change = await look(id, deadline).catch((error: unknown) => {
        rest.wake()
        throw error
      })
      if (change !== null && (leftMs <= 0 || !runs(change, orAttached))) {
        rest.wake()
        return runs(change, orAttached) ? null : change
      }
      await rest.over
    }
  }

  /** Once changes will be noticed, or soon without: who waits for a store that cannot notify yet has to poll. */
  async function hearing(id: RecordId, deadline: number): Promise<void> {
    const { ready } = watching()
    const soon = nap(id, Math.max(0, Math.min(limits.joinPollBaseMs, deadline - runtime.monotonicMs())))
    let polls = false
    // Whatever happened before is noticed by one more look.
    void ready.then(() => {
      if (polls) rouse(id)
    })
    await Promise.race([ready, soon.over])
    polls = true
    soon.wake()
  }

  /** A store that is away for a moment must not send away who has time to wait: null then, and it is asked again. */
  async function look(id: RecordId, deadline: number): Promise<Change | null> {
    const askedAt = runtime.monotonicMs()
    try {
      const { records, now } = await claims.read([id], { timeoutMs: limits.storeCallMs })
      return { record: records[0] ?? null, now, askedAt }
    } catch (error) {
      const mayComeBack = isOnceError(error) && error.retryable && error.code !== 'stopped'
      if (mayComeBack && runtime.monotonicMs() < deadline) return null
      throw error
    }
  }

  async function counted<T>(work: () => Promise<T>): Promise<T> {
    if (count >= limits.waiters) {
      const text = `${count} callers already wait for running attempts.`
      throw new OnceError('too_many_waiters', text, { retryAfterMs: CROWDED_RETRY_MS })
    }
    count++
    try {
      return await work()
    } finally {
      count--
      if (count === 0 && watch !== null) linger()
    }
  }

  return {
    counted,
    settled: (id, deadline, orAttached = false) => counted(() => settled(id, deadline, orAttached)),
    stop() {
      watch?.stop()
      watch = null
    },
  }
}

function runs({ record, now }: Change, orAttached: boolean): boolean {
  if (record?.state !== 'in_progress' || (orAttached && record.pointer !== null)) return false
  return now < record.leaseUntil + limits.leaseGraceMs
}
