import type { MemoryClock } from '../ledger/stores/memory/index.ts'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'

/** A clock that moves only on request: for a memory store, or for any function that takes a clock. */
export interface FakeClock extends Required<MemoryClock> {
  /** Moves time forward, and fires what becomes due, in order. */
  advance(ms: number): void
  /** The wall clock jumps, forward or back; monotonic time does not. */
  jump(ms: number): void
  /** For `createLedger({ store, runtime })`: what the process remembers ages by this clock, and its timers wait for it. */
  readonly runtime: Runtime
}

interface Due {
  readonly at: number
  fire(): void
}

/**
 * A clock for tests, which stands until it is moved. It begins on 1 January 2030.
 *
 * @example
 * ```ts
 * import { createLedger, DAY } from 'onceonly'
 * import { memoryStore } from 'onceonly/memory'
 * import { createFakeClock } from 'onceonly/testing'
 *
 * const clock = createFakeClock()
 * const once = createLedger({ store: memoryStore({ clock }), runtime: clock.runtime, background: false })
 * clock.advance(8 * DAY)
 * ```
 */
export function createFakeClock(wallStartMs = Date.UTC(2030, 0, 1)): FakeClock {
  const timers = new Set<Due>()
  let nowMs = 0
  let wallOffsetMs = wallStartMs

  function nextDue(untilMs: number): Due | undefined {
    let next: Due | undefined
    for (const timer of timers) if (timer.at <= untilMs && (next === undefined || timer.at < next.at)) next = timer
    return next
  }

  const times: Required<MemoryClock> = {
    monotonicMs: () => nowMs,
    wallMs: () => wallOffsetMs + nowMs,
    setTimer: (ms, fire) => {
      const timer: Due = { at: nowMs + ms, fire }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
  }
  const { soon, random, newId } = createRuntime()

  return {
    ...times,
    runtime: { ...times, soon, random, newId },
    advance: (ms) => {
      const untilMs = nowMs + ms
      // A timer may set another one that is due within the same step.
      for (let due = nextDue(untilMs); due !== undefined; due = nextDue(untilMs)) {
        timers.delete(due)
        nowMs = Math.max(nowMs, due.at)
        due.fire()
      }
      nowMs = untilMs
    },
    jump: (ms) => {
      wallOffsetMs += ms
    },
  }
}
