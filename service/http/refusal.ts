import type { ErrorCode, OnceError } from 'onceonly'
import type { Problem } from './problem.ts'
import { type ProblemName, problems } from './problems.ts'

/** Codes that are not here cannot happen to a well-formed request, so they are the server's own fault. */
const names = {
  key_reused: 'idempotency-key-reused',
  in_progress: 'request-in-progress',
  retry_later: 'retry-later',
  outcome_unknown: 'outcome-unknown',
  outcome_not_stored: 'response-not-stored',
  key_expired: 'key-expired',
  not_authorized: 'forbidden',
  too_many_attempts: 'too-many-attempts',
  too_many_waiters: 'busy',
  store_busy: 'busy',
  store_unavailable: 'store-unavailable',
  store_replaced: 'store-unavailable',
  transaction_too_long: 'busy',
  stopped: 'stopping',
} as const satisfies Partial<Record<ErrorCode, ProblemName>>

/** Long enough for a store to come back, short enough for a person who waits. */
const retryAfterMs = 1000

/** What a client gets when the ledger refuses. */
export function problemOf(error: OnceError): Problem {
  const name: ProblemName = isAnswered(error.code) ? names[error.code] : 'internal-error'
  const problem = { name, detail: error.message }
  return problems[name].retryable ? { ...problem, retryAfterMs: error.retryAfterMs ?? retryAfterMs } : problem
}

function isAnswered(code: string): code is keyof typeof names {
  return code in names
}
