import { OnceError } from '../../core/errors.ts'

export function usedAfterEnd(): OnceError {
  return new OnceError('transaction_aborted', 'The transaction is over; its `tx` cannot be used any more.')
}

export function heldTooLong(holdMs: number): OnceError {
  const message = `A transaction held SQLite's only writer for more than ${holdMs} ms.`
  return new OnceError('transaction_too_long', message)
}

export function rolledBackBySqlite(cause: unknown): OnceError {
  return new OnceError('transaction_aborted', 'A statement made SQLite roll the whole transaction back.', { cause })
}
