import type { Loop } from './loop.ts'
import type { Runtime, Timer } from './runtime.ts'

export interface DueLoopOptions {
  readonly runtime: Runtime
  /** The longest pause, as a safety net: a hint may be lost, and clocks may be set. */
  readonly mostMs: number
  /** The pause between two rounds that are rung for, and after a round that failed or could not do what is due. */
  readonly leastMs: number
  /** Does what is due. Answers after how many milliseconds something is due again; null when nothing waits. */
  round(): Promise<number | null>
  failed(error: unknown): void
}

export interface DueLoop extends Loop {
  /** Something may have changed: a round begins now, or `leastMs` after the last one began. */
  ring(): void
  /** Something is due: a round begins after everything that is ready now, or after the one that is under way. */
  soon(): void
}

/** Background work that knows when it is due, and sleeps until then or until it is rung for. Rounds never overlap. */
export function startDueLoop({ runtime, mostMs, leastMs, round, failed }: DueLoopOptions): DueLoop {
  let stopped = false
  let running: Promise<void> | null = null
  /** What was asked for since the last round began. */
  let wanted: 'nothing' | 'ring' | 'soon' = 'nothing'
  let timer: Timer | null = null
  let firesAtMs = Number.POSITIVE_INFINITY
  let begunAtMs = Number.NEGATIVE_INFINITY

  function beginIn(ms: number): void {
    timer?.cancel()
    firesAtMs = runtime.monotonicMs() + ms
    timer = runtime.setTimer(ms, begin, true)
  }

  function begin(): void {
    if (stopped || running !== null) return
    timer?.cancel()
    // Not at once: what a round asks for while it begins is asked for during the round.
    running = Promise.resolve().then(turn)
  }

  async function turn(): Promise<void> {
    let waitMs: number
    do {
      wanted = 'nothing'
      waitMs = leastMs
      begunAtMs = runtime.monotonicMs()
      try {
        const dueMs = (await round()) ?? Number.POSITIVE_INFINITY
        // A timer of Node's may fire a part of a millisecond early.
        if (dueMs > 0) waitMs = Math.min(safetyMs(), dueMs + 1)
      } catch (error) {
        failed(error)
        break
      }
    } while (asked() === 'soon' && !stopped)
    running = null
    if (!stopped) beginIn(asked() === 'ring' ? Math.min(waitMs, restMs()) : waitMs)
  }

  /** As a call, because it changes while a round is awaited. */
  const asked = () => wanted
  const restMs = () => Math.max(0, begunAtMs + leastMs - runtime.monotonicMs())
  /** Spread out, so that many processes on one store do not all come at once. */
  const safetyMs = () => mostMs * (0.5 + runtime.random())

  beginIn(leastMs * runtime.random())
  return {
    ring() {
      if (stopped) return
      if (wanted === 'nothing') wanted = 'ring'
      const ms = restMs()
      if (running === null && runtime.monotonicMs() + ms < firesAtMs) beginIn(ms)
    },
    soon() {
      if (stopped || wanted === 'soon') return
      wanted = 'soon'
      if (running === null) runtime.soon(begin)
    },
    async stop() {
      stopped = true
      timer?.cancel()
      await running
    },
  }
}
