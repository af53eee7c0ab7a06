import type { Runtime } from '../../runtime/runtime.ts'

/** Deadlines are kept this precisely: almost no call ever reaches one, so all of them share one timer. */
const OVERDUE_EVERY_MS = 250

/**
 * Ends calls past their deadline, also of a store that hangs. The watch runs while `isBusy`, in the background: it keeps
 * no process alive. Call the returned function for each new call.
 */
export function createOverdueWatch(
  runtime: Runtime,
  isBusy: () => boolean,
  end: (now: number) => void,
): (timeoutMs: number) => void {
  let watching = false

  function watch(): void {
    if (watching || !isBusy()) return
    watching = true
    runtime.setTimer(
      OVERDUE_EVERY_MS,
      () => {
        watching = false
        end(runtime.monotonicMs())
        watch()
      },
      true,
    )
  }

  return (timeoutMs) => {
    watch()
    // One more, because a timer of Node's may fire a part of a millisecond early.
    if (timeoutMs < OVERDUE_EVERY_MS) runtime.setTimer(timeoutMs + 1, () => end(runtime.monotonicMs()), true)
  }
}
