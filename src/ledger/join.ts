import { OnceError } from '../core/errors.ts'
import type { RecordId } from '../core/identity.ts'
import { limits, SECOND } from '../core/limits.ts'
import type { LedgerRecord } from '../core/record.ts'
import type { Claims, Watch } from '../store/port.ts'
import type { Runtime } from './runtime.ts'

/** Waiting for attempts of others. Notifications are hints: a waiter also reads again by itself, ever more slowly. */
export interface Joiners {
  /**
   * Until the record is not in progress any more, its lease has lapsed, or, where that is enough, a pointer is attached.
   * Null when the deadline came first.
   */
  settled(id: RecordId, deadline: number, orAttached?: boolean): Promise<Change | null>
  /** Bounds everybody who waits in this process. */
  counted<T>(work: () => Promise<T>): Promise<T>
  stop(): void
}

export interface Change {
  readonly record: LedgerRecord | null
  readonly now: number
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
  let busySince = 0

  function wake(ids: readonly RecordId[] | null): void {
    changed(ids)
    for (const id of ids ?? [...sleepers.keys()]) for (const up of sleepers.get(id) ?? []) up()
  }

  function watching(): Watch {
    watch ??= claims.watch(wake)
    return watch
  }

  function linger(): void {
    const since = ++busySince
    runtime.setTimer(
      LINGER_MS,
      () => {
        if (count > 0 || since !== busySince) return
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
        if (set.size === 0) sleepers.delete(id)
        resolve()
      }
      set.add(up)
    })
    return { over, wake: () => up() }
  }

  async function settled(id: RecordId, deadline: number, orAttached: boolean): Promise<Change | null> {
    const { ready } = watching()
    await Promise.race([ready, nap(id, Math.max(0, deadline - runtime.monotonicMs())).over])
    for (let pollMs: number = limits.joinPollBaseMs; ; pollMs = Math.min(2 * pollMs, limits.joinPollCapMs)) {
      const leftMs = deadline - runtime.monotonicMs()
      // Asleep before reading, so that a wake between the read and the sleep is not lost.
      const rest = nap(id, Math.max(0, Math.min(pollMs, leftMs)))
      const { records, now } = await claims.read([id], { timeoutMs: limits.storeCallMs })
      const record = records[0] ?? null
      const known = orAttached && record !== null && record.pointer !== null
      const running = record?.state === 'in_progress' && !known && now < record.leaseUntil + limits.leaseGraceMs
      if (!running || leftMs <= 0) {
        rest.wake()
        return running ? null : { record, now }
      }
      await rest.over
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
