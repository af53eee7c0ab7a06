/**
 * How many lines of execution a run has: one, until its branches run side by side. A run rests when each of them waits,
 * so that code between two steps, however long it takes, is not taken for waiting.
 */
export interface Lines {
  count(): number
  /** So many branches in place of the one that waits for them; when that one loses a race, they go with it. */
  fork(count: number, signal: AbortSignal): Line
}

export interface Line {
  /** One of the branches has ended. */
  ended(): void
  /** The waiting line continues; branches that have not ended no longer count. */
  join(): void
}

export function createLines(): Lines {
  let lines = 1
  return {
    count: () => lines,
    fork(count, signal) {
      let left = count
      let joined = false
      lines += count - 1
      const join = () => {
        if (joined) return
        joined = true
        lines += 1 - left
      }
      signal.addEventListener('abort', join, { once: true })
      return {
        ended() {
          if (joined) return
          left -= 1
          lines -= 1
        },
        join() {
          signal.removeEventListener('abort', join)
          join()
        },
      }
    },
  }
}
