import type { OnceError } from '../core/errors.ts'

/** Counts the calls of a store, so that its end can wait for them. */
export interface CallsUnderWay {
  /** Throws once the store was stopped. */
  check(): void
  begin(): void
  end(): void
  /** Refuses new calls and waits for those under way; `accepted` ends when all accepted requests were flushed. */
  drain(accepted: Promise<void>): Promise<void>
}

export function createCallsUnderWay(stoppedError: () => OnceError): CallsUnderWay {
  const idle: (() => void)[] = []
  let underWay = 0
  let stopped = false
  return {
    check() {
      if (stopped) throw stoppedError()
    },
    begin() {
      underWay += 1
    },
    end() {
      underWay -= 1
      if (underWay === 0) for (const wake of idle.splice(0)) wake()
    },
    async drain(accepted) {
      stopped = true
      await accepted
      if (underWay > 0) await new Promise<void>((resolve) => idle.push(resolve))
    },
  }
}
