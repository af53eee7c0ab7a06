import { limits } from '../ledger/core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** What a suspended line of a run waits for. */
export interface Suspension {
  readonly dueAt: number | null
  readonly unknown: boolean
  /** Another worker shall continue; the open steps of an earlier worker are still there. */
  readonly handedOver?: boolean
}

export interface Wait extends Suspension {
  /** A signal or an operator may end it: the count of outside changes at the last check. */
  readonly heard?: number
}

/** `notified`: an outside change came to the run, and lines that wait for one should check. */
export type Woken = 'due' | 'abandoned' | 'notified'

/** The lines of a run that wait in memory, while others still act. */
export interface Waits {
  count(): number
  /** What all of them wait for. */
  list(): readonly Suspension[]
  /** Whether one of them waits for outside changes. */
  listens(): boolean
  /** Grows with every outside change. */
  heard(): number
  begin(until: Wait, signal: AbortSignal): Promise<Woken>
  /** For a line that never wakes again. */
  park(until: Suspension, signal?: AbortSignal): void
  notify(): void
  /** No line waits any more: the run has left the memory. */
  end(): void
}

interface Waiting {
  readonly until: Wait
  wake(why: Woken): void
  cancel(): void
}

export function createWaits(runtime: Runtime, nearNow: () => number): Waits {
  const waiting = new Set<Waiting>()
  let heard = 0

  /** In pieces, because longer timers fire at once; a run that only sleeps is suspended long before. */
  function timerOf(dueAt: number, fire: () => void): { cancel(): void } {
    return runtime.setTimer(Math.min(Math.max(0, dueAt - nearNow()), limits.runTimerMs), fire, true)
  }

  return {
    count: () => waiting.size,
    list: () => [...waiting].map(({ until }) => until),
    listens: () => [...waiting].some(({ until }) => until.heard !== undefined),
    heard: () => heard,
    begin(until, signal) {
      if (signal.aborted) return Promise.resolve('abandoned')
      // It came between the last look and now.
      if (until.heard !== undefined && until.heard !== heard) return Promise.resolve('notified')
      return new Promise((resolve) => {
        const abandon = () => wake('abandoned')
        const timer = until.dueAt === null ? null : timerOf(until.dueAt, () => wake('due'))
        const cancel = () => {
          timer?.cancel()
          signal.removeEventListener('abort', abandon)
        }
        const one: Waiting = { until, wake, cancel }
        function wake(why: Woken): void {
          cancel()
          waiting.delete(one)
          resolve(why)
        }
        signal.addEventListener('abort', abandon, { once: true })
        waiting.add(one)
      })
    },
    park(until, signal) {
      if (signal?.aborted === true) return
      const one: Waiting = { until, wake: () => {}, cancel: () => {} }
      waiting.add(one)
      signal?.addEventListener('abort', () => waiting.delete(one), { once: true })
    },
    notify() {
      heard += 1
      for (const one of waiting) if (one.until.heard !== undefined) one.wake('notified')
    },
    end() {
      for (const { cancel } of waiting) cancel()
    },
  }
}
