import {
  BaseError,
  commonErrors,
  type ErrorOptions,
  type ErrorRow,
  type ErrorTable,
  isBaseError,
} from './base-error.ts'

export type { AppliedWord, ErrorOptions, ErrorRow, ErrorTable } from './base-error.ts'

/**
 * All errors of the library are one class. The code says what happened, `next` says what to do. Each wing owns its rows in
 * a table of its own; this one is the ledger's and its stores'.
 */

export const ledgerErrors = {
  bad_identity: { retryable: false, applied: 'no', next: 'Give a non-blank tenant, caller and key within the limits.' },
  bad_input: commonErrors.bad_input,
  bad_option: commonErrors.bad_option,
  key_reused: commonErrors.key_reused,
  in_progress: {
    retryable: true,
    applied: 'no',
    next: 'Retry the same call after `retryAfterMs`; the first attempt still runs.',
  },
  retry_later: commonErrors.retry_later,
  outcome_unknown: commonErrors.outcome_unknown,
  key_expired: {
    retryable: false,
    applied: 'maybe',
    next: 'The record of this key is gone; check the effect, then use a new key.',
  },
  effect_failed: {
    retryable: false,
    applied: 'no',
    next: 'The command was validly refused; send another command under another key.',
  },
  not_done: { retryable: true, applied: 'no', next: 'Nothing happened; retry the same call after `retryAfterMs`.' },
  outcome_not_stored: {
    retryable: false,
    applied: 'maybe',
    next: 'Look the effect up by the pointer; the event `outcome_not_stored` of the first attempt says why.',
  },
  not_authorized: { retryable: false, applied: 'no', next: 'The caller may not see this outcome any more.' },
  too_many_waiters: {
    retryable: true,
    applied: 'no',
    next: 'Retry after `retryAfterMs`; too many callers already wait in this process.',
  },
  too_many_attempts: {
    retryable: true,
    applied: 'no',
    next: 'Slow down: this caller repeats one key too often; retry after `retryAfterMs`.',
  },
  lease_lost: {
    retryable: false,
    applied: 'maybe',
    next: 'Another attempt, or an operator, owns this identity now; stop and record nothing.',
  },
  lease_over: {
    retryable: false,
    applied: 'maybe',
    next: 'The lease ended before this call; stop the effect, its `signal` has fired.',
  },
  nested_claim: {
    retryable: false,
    applied: 'no',
    next: 'Use a `transaction` operation inside a transaction, or run the leased operation after it has committed.',
  },
  transaction_too_long: {
    retryable: true,
    applied: 'no',
    next: 'Keep slow work out of the transaction; it was rolled back.',
  },
  transaction_aborted: {
    retryable: false,
    applied: 'no',
    next: 'Run statements that may fail inside `inSavepoint`, and end every nested transaction.',
  },
  transaction_lost: {
    retryable: false,
    applied: 'maybe',
    next: 'Other code ended the transaction on its connection; use `tx` or `tx.client`, and check what the effect wrote.',
  },
  outbox_missing: { retryable: false, applied: 'no', next: 'Make one: createOutbox({ ledger }).' },
  identity_collision: {
    retryable: false,
    applied: 'no',
    next: 'Two identities share one record id; choose another key.',
  },
  row_refused: {
    retryable: false,
    applied: 'no',
    next: 'The store cannot hold this value (see the cause); change the key, the pointer or the outcome.',
  },
  store_unavailable: {
    retryable: true,
    applied: 'maybe',
    next: 'Check that the store runs and can be reached at its URL; reconnecting needs no restart.',
  },
  store_busy: commonErrors.store_busy,
  pool_exhausted: { retryable: false, applied: 'no', next: 'Use `tx`, or a larger pool.' },
  store_replaced: {
    retryable: false,
    applied: 'no',
    next: 'Restart every process that uses the file, and stop them before you restore it.',
  },
  schema_too_old: {
    retryable: false,
    applied: 'no',
    next: "Run `onceonly migrate`, or the SQL that `onceonly migrations` prints; or open the store with `migrate: 'auto'`.",
  },
  schema_too_new: {
    retryable: false,
    applied: 'no',
    next: 'Deploy a newer version of onceonly: a newer one migrated the store.',
  },
  stopped: commonErrors.stopped,
  not_found: {
    retryable: false,
    applied: 'no',
    next: 'Check tenant, caller, operation and key; nothing is recorded there.',
  },
  not_resolvable: {
    retryable: false,
    applied: 'no',
    next: 'Only an unknown or lapsed attempt can be resolved; look at its state first.',
  },
  fence_moved: {
    retryable: false,
    applied: 'no',
    next: 'The record changed since you read it; read it again.',
  },
} as const satisfies ErrorTable

export type LedgerErrorCode = keyof typeof ledgerErrors

/**
 * The one error class. Recognise it with `isOnceError`, which also works across two copies of the package.
 *
 * @example
 * ```ts
 * import { isOnceError } from 'onceonly/errors'
 *
 * export function waitBeforeRetryMs(error: unknown): number | null {
 *   return isOnceError(error) && error.retryable ? (error.retryAfterMs ?? 1000) : null
 * }
 * ```
 */
export class OnceError<C extends string = string> extends BaseError<C> {
  constructor(code: C & LedgerErrorCode, message: string, options?: ErrorOptions)
  /** For the codes of a wing, with the row of its own table. */
  constructor(code: C, message: string, options: ErrorOptions | undefined, row: ErrorRow)
  constructor(code: C, message: string, options: ErrorOptions = {}, row = ledgerErrors[code as C & LedgerErrorCode]) {
    super(code, message, options, row)
  }
}

export function isOnceError<C extends string = string>(error: unknown, code?: C): error is OnceError<C> {
  return isBaseError(error, code)
}

/** The same error, of a request that was not sent at all: whatever failed did so on the way to it. */
export function notApplied(error: unknown): unknown {
  if (!isOnceError(error) || error.applied === 'no') return error
  const { code, message, retryable, next, details } = error
  return new OnceError(code, message, { cause: error, details }, { retryable, applied: 'no', next, inMessage: false })
}
