import type { ErrorCode, OnceError } from 'onceonly'
import type { Problem } from './problem.ts'

/** Codes that are not here cannot happen to a well-formed request, so they are the server's own fault. */
const answers = {
  key_reused: [409, 'idempotency-key-reused', 'Idempotency key reused'],
  in_progress: [409, 'request-in-progress', 'Request in progress'],
  retry_later: [409, 'retry-later', 'Retry later'],
  outcome_unknown: [409, 'outcome-unknown', 'Outcome unknown'],
  outcome_not_stored: [409, 'response-not-stored', 'Response not stored'],
  key_expired: [412, 'key-expired', 'Key expired'],
  not_authorized: [403, 'forbidden', 'Forbidden'],
  too_many_attempts: [429, 'too-many-attempts', 'Too many attempts'],
  too_many_waiters: [503, 'busy', 'Busy'],
  store_busy: [503, 'busy', 'Busy'],
  store_unavailable: [503, 'store-unavailable', 'Store unavailable'],
  transaction_too_long: [503, 'busy', 'Busy'],
  stopped: [503, 'stopping', 'The server is stopping'],
} as const satisfies Partial<Record<ErrorCode, readonly [status: number, name: string, title: string]>>

/** Long enough for a store to come back, short enough for a person who waits. */
const retryAfterMs = 1000

/** What a client is told when the ledger said no. */
export function problemOf(error: OnceError): Problem {
  const [status, name, title] = isAnswered(error.code)
    ? answers[error.code]
    : ([500, 'internal', 'Internal error'] as const)
  const problem = { status, name, title, detail: error.message, retryable: error.retryable }
  return error.retryable ? { ...problem, retryAfterMs: error.retryAfterMs ?? retryAfterMs } : problem
}

function isAnswered(code: ErrorCode): code is keyof typeof answers {
  return code in answers
}
