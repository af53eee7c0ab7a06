import type { OnceError } from '../core/errors.ts'

/** Whether a transaction is still open. Once it is over, nothing that belongs to it may reach the connection. */
export interface Life {
  /** Throws the reason once the transaction is over. */
  check(): void
  isOver(): boolean
  /** The first reason counts. */
  end(reason: OnceError): void
  /** Resolves at the end, whatever the reason. */
  readonly ended: Promise<void>
}

export function createLife(): Life {
  let over: OnceError | null = null
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  return {
    check: () => {
      if (over !== null) throw over
    },
    isOver: () => over !== null,
    end: (reason) => {
      over ??= reason
      resolve()
    },
    ended,
  }
}
