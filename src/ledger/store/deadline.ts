/** The end of one call. Whatever the server does, the caller has its answer by then. */
export interface Deadline {
  readonly timeoutMs: number
  remainingMs(): number
  /** Calls `act` when time is up (at once if it is already), unless the returned function was called before. */
  onPassed(act: () => void): () => void
  /** The call is over: nothing fires any more. */
  end(): void
}

/** A longer timer of Node's fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** With a signal it also passes when that fires. */
export function createDeadline(timeoutMs: number, signal?: AbortSignal): Deadline {
  const acts = new Set<() => void>()
  const endsAtMs = performance.now() + timeoutMs
  let passed = false
  const timer = setTimeout(pass, Math.min(timeoutMs, LONGEST_TIMER_MS))
  signal?.addEventListener('abort', pass)

  function pass(): void {
    passed = true
    const due = [...acts]
    end()
    for (const act of due) act()
  }

  function end(): void {
    clearTimeout(timer)
    signal?.removeEventListener('abort', pass)
    acts.clear()
  }

  return {
    timeoutMs,
    remainingMs: () => (passed ? 0 : Math.max(0, endsAtMs - performance.now())),
    onPassed: (act) => {
      if (passed) {
        act()
        return () => undefined
      }
      acts.add(act)
      return () => void acts.delete(act)
    },
    end,
  }
}

/** Waits for something that cannot be cancelled, but no longer than until the deadline. */
export function inTime<T>(promise: Promise<T>, deadline: Deadline, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const off = deadline.onPassed(() => reject(late()))
    promise.then(resolve, reject).finally(off)
  })
}
