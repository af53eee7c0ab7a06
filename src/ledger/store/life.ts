import type { OnceError } from '../core/errors.ts'

/** Why a transaction is over; as a function where that is seldom asked for, because an error is dear to make. */
export type Reason = OnceError | (() => OnceError)

/** Whether a transaction is still open. Once it is over, nothing that belongs to it may reach the connection. */
export interface Life {
  /** Throws the reason once the transaction is over. */
  check(): void
  isOver(): boolean
  /** The first reason counts. */
  end(reason: Reason): void
  /** Resolves at the end, whatever the reason. */
  readonly ended: Promise<void>
}

export function createLife(): Life {
  let over: Reason | null = null
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  return {
    check: () => {
      if (over !== null) throw typeof over === 'function' ? over() : over
    },
    isOver: () => over !== null,
    end: (reason) => {
      over ??= reason
      resolve()
    },
    ended,
  }
}
