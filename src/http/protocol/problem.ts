import { MINUTE, SECOND } from '../../ledger/core/limits.ts'
import type { Answer, HeaderList } from './exchange.ts'
import { jsonAnswer } from './exchange.ts'

/** Every way in which the protocol itself answers, instead of the handler. */
export type Situation =
  | 'idempotency-key-missing'
  | 'idempotency-key-invalid'
  | 'idempotency-key-reused'
  | 'request-in-progress'
  | 'request-accepted'
  | 'retry-later'
  | 'outcome-unknown'
  | 'key-expired'
  | 'too-many-attempts'
  | 'store-unavailable'
  | 'not-authorized'
  | 'response-not-stored'
  | 'request-failed'
  | 'invalid-request'
  | 'content-too-large'
  | 'not-committed'
  | 'internal-error'
  | 'operation-not-found'
  | 'request-too-slow'
  | 'too-busy'
  | 'upstream-unreachable'
  | 'upstream-broken'
  | 'upstream-late'
  | 'upstream-failed'
  | 'home-unreachable'

interface SituationRow {
  readonly status: number
  readonly title: string
  readonly retryable: boolean
}

export const situations = {
  'idempotency-key-missing': { status: 400, title: 'An idempotency key is required', retryable: false },
  'idempotency-key-invalid': { status: 400, title: 'The idempotency key is malformed', retryable: false },
  'idempotency-key-reused': { status: 409, title: 'The key was used for another request', retryable: false },
  'request-in-progress': { status: 409, title: 'The first request is still in progress', retryable: true },
  'request-accepted': { status: 202, title: 'The request is being processed', retryable: true },
  'retry-later': { status: 409, title: 'The request failed and may be retried later', retryable: true },
  'outcome-unknown': { status: 409, title: 'Nobody knows whether the request took effect', retryable: false },
  'key-expired': { status: 412, title: 'The key is past its lifetime', retryable: false },
  'too-many-attempts': { status: 429, title: 'Too many attempts under one key', retryable: true },
  'store-unavailable': { status: 503, title: 'The record of requests cannot be reached', retryable: true },
  'not-authorized': { status: 403, title: 'Not allowed to see this outcome', retryable: false },
  'response-not-stored': { status: 409, title: 'The response was not stored', retryable: false },
  'request-failed': { status: 409, title: 'The request failed for good', retryable: false },
  'invalid-request': { status: 400, title: 'The request cannot be read', retryable: false },
  'content-too-large': { status: 413, title: 'The request is too large', retryable: false },
  'not-committed': { status: 500, title: 'The request was undone', retryable: false },
  'internal-error': { status: 500, title: 'The server failed', retryable: false },
  'operation-not-found': { status: 404, title: 'There is no such operation', retryable: false },
  'request-too-slow': { status: 408, title: 'The request did not arrive in time', retryable: true },
  'too-busy': { status: 503, title: 'Too much is under way', retryable: true },
  'upstream-unreachable': { status: 503, title: 'The service cannot be reached', retryable: true },
  'upstream-broken': { status: 502, title: 'Nobody knows whether the request took effect', retryable: false },
  'upstream-late': { status: 504, title: 'Nobody knows whether the request took effect', retryable: false },
  'upstream-failed': { status: 502, title: 'The service did not answer', retryable: false },
  'home-unreachable': { status: 503, title: 'The home region of the key cannot be reached', retryable: true },
} as const satisfies Record<Situation, SituationRow>

/** What is known beside the situation itself. */
export interface ProblemDetail {
  readonly detail: string
  readonly operation?: string
  readonly instance?: string
  readonly retryAfterMs?: number | null
  readonly location?: string
  readonly extra?: Readonly<Record<string, unknown>>
}

const PROBLEM_TYPE = 'application/problem+json'
const STORE_RETRY_MS = SECOND
const LONGEST_RETRY_MS = 60 * MINUTE

/** `Retry-After` counts whole seconds, and zero would invite a storm. */
export function retryAfterHeader(ms: number | null | undefined): HeaderList {
  if (ms === null || ms === undefined) return []
  return [['retry-after', String(Math.max(1, Math.ceil(Math.min(ms, LONGEST_RETRY_MS) / SECOND)))]]
}

/** A problem document of RFC 9457, with what a client needs as top-level members. */
export function problemAnswer(base: string, situation: Situation, given: ProblemDetail, status?: number): Answer {
  const row: SituationRow = situations[situation]
  const { detail, operation, instance, location, extra } = given
  const retryAfterMs = given.retryAfterMs ?? (situation === 'store-unavailable' ? STORE_RETRY_MS : null)
  const headers: HeaderList = [
    ...retryAfterHeader(retryAfterMs),
    ...(location === undefined ? [] : [['location', location] as const]),
  ]
  const document = {
    type: `${base}/${situation}`,
    title: row.title,
    status: status ?? row.status,
    detail,
    ...(instance === undefined ? {} : { instance }),
    retryable: row.retryable,
    ...(operation === undefined ? {} : { operation }),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...extra,
  }
  return jsonAnswer(status ?? row.status, PROBLEM_TYPE, document, headers)
}
