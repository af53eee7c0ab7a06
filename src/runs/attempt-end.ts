import { limits } from '../ledger/core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** When an attempt must end: its time is up, its branch lost a race, or another worker has its run. */
export interface AttemptEnd {
  /** Created on first use: most steps never read it, and a signal costs more than such a step. */
  signal(): AbortSignal
  /**
   * The end of the action, or of its time. An action that ignores its signal is not waited for: its later work is lost and
   * its outcome may be unknown. After the run is lost, this never settles.
   */
  race<T>(acting: Promise<T>): Promise<T>
  /** It is over: no timer is left behind. */
  stop(): void
}

export interface AttemptLimits {
  readonly timeoutMs: number
  /** Of the branch; the same as `lost` outside of branches. */
  readonly branch: AbortSignal
  readonly lost: AbortSignal
}

export function createAttemptEnd(runtime: Runtime, { timeoutMs, branch, lost }: AttemptLimits): AttemptEnd {
  let reason: Error | null = null
  let controller: AbortController | null = null
  let refuse: ((error: Error) => void) | null = null

  function end(): void {
    if (reason !== null) return
    reason = new Error(`It took longer than ${timeoutMs} ms, or was not wanted any more.`)
    controller?.abort(reason)
    if (!lost.aborted) refuse?.(reason)
  }

  /** In pieces, because longer timers fire at once. */
  function timerOf(leftMs: number): { cancel(): void } {
    if (leftMs <= limits.runTimerMs) return runtime.setTimer(leftMs, end, true)
    return runtime.setTimer(
      limits.runTimerMs,
      () => {
        timer = timerOf(leftMs - limits.runTimerMs)
      },
      true,
    )
  }

  let timer = timerOf(timeoutMs)
  const signals = branch === lost ? [lost] : [branch, lost]
  for (const each of signals) each.addEventListener('abort', end, { once: true })
  if (signals.some(({ aborted }) => aborted)) end()

  return {
    signal() {
      controller ??= new AbortController()
      if (reason !== null) controller.abort(reason)
      return controller.signal
    },
    race: (acting) =>
      new Promise((resolve, reject) => {
        refuse = reject
        if (reason !== null && !lost.aborted) reject(reason)
        acting.then(resolve, reject)
      }),
    stop() {
      timer.cancel()
      for (const each of signals) each.removeEventListener('abort', end)
    },
  }
}
