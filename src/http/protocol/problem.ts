import { MINUTE, SECOND } from '../../ledger/core/limits.ts'
import type { Answer, HeaderList } from './exchange.ts'
import { jsonAnswer } from './exchange.ts'
import { notKept } from './own-headers.ts'

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
  | 'credential-changed'

/** One kind of problem: the documents are made of it, and the page that their `type` leads to. */
export interface ProblemRow {
  readonly status: number
  readonly title: string
  readonly retryable: boolean
  /** What happened, for the developer of a client. */
  readonly about: string
  /** What to do about it. */
  readonly next: string
}

/** Every problem of the protocol by its name, which is the last part of its `type`. */
export const situations = {
  'idempotency-key-missing': {
    status: 400,
    title: 'An idempotency key is required',
    retryable: false,
    about: 'This operation is protected by a key, and the request has none.',
    next: 'Create a new key, for example a UUID, send it in the header that `detail` names, and keep it for every retry of the same request.',
  },
  'idempotency-key-invalid': {
    status: 400,
    title: 'The idempotency key is malformed',
    retryable: false,
    about: 'The key is empty, too long, repeated, or has characters that a key must not have.',
    next: 'Send one key of 1 to 255 visible ASCII characters, bare or as a quoted string.',
  },
  'idempotency-key-reused': {
    status: 409,
    title: 'The key was used for another request',
    retryable: false,
    about: 'The key belongs to an earlier request with another method, path or payload. Nothing was done.',
    next: 'Use a new key for a new request. For a retry, send exactly what was sent first.',
  },
  'request-in-progress': {
    status: 409,
    title: 'The first request is still in progress',
    retryable: true,
    about: 'The first request with this key has not ended. This one did nothing.',
    next: 'Wait as long as `Retry-After` says, and send the same request again: it gets the answer of the first. `instance`, where it is an operation, shows the state.',
  },
  'request-accepted': {
    status: 202,
    title: 'The request is being processed',
    retryable: true,
    about: 'The request is processed in the background.',
    next: 'Read the address in `Location` until the status is final, or send the same request again with the same key.',
  },
  'retry-later': {
    status: 409,
    title: 'The request failed and may be retried later',
    retryable: true,
    about: 'The attempt ended before it had an effect.',
    next: 'Wait as long as `Retry-After` says, and send the same request again with the same key.',
  },
  'outcome-unknown': {
    status: 409,
    title: 'The outcome of the request is unknown',
    retryable: false,
    about: 'The effect began, and its end was never recorded: it may have happened. It is not repeated by itself.',
    next: 'Read the operation at `instance`. An operator, or a question to the provider, finds out what happened; then the same request gets that answer. A new key could do it twice.',
  },
  'key-expired': {
    status: 412,
    title: 'The key is past its lifetime',
    retryable: false,
    about: 'The key was used so long ago that its answer is gone.',
    next: 'Find out whether the first request took effect, before you send it under a new key.',
  },
  'too-many-attempts': {
    status: 429,
    title: 'Too many attempts under one key',
    retryable: true,
    about: 'The same key was sent more often than this operation allows.',
    next: 'Wait as long as `Retry-After` says, and retry with growing pauses.',
  },
  'store-unavailable': {
    status: 503,
    title: 'The record of requests cannot be reached',
    retryable: true,
    about: 'The database that records requests did not answer.',
    next: 'Wait as long as `Retry-After` says, and send the same request again with the same key.',
  },
  'not-authorized': {
    status: 403,
    title: 'Not allowed to see this outcome',
    retryable: false,
    about: 'The outcome of this request is not for this caller.',
    next: 'Send it with the credentials of the caller who made it, or ask for the right.',
  },
  'credential-changed': {
    status: 409,
    title: 'The first request had another credential',
    retryable: false,
    about:
      'A request with this key or this content came with another credential, and the gateway cannot determine whether both belong to one caller. Nothing was forwarded.',
    next: 'Send it with the credential of the first request, or a new request under a new key. The operator of the gateway can name the caller (`caller`), or let the service decide (`authorize`).',
  },
  'response-not-stored': {
    status: 409,
    title: 'The response was not stored',
    retryable: false,
    about: 'The request took effect, but its response was too large or too sensitive to be kept.',
    next: 'Read the result where it is: `original` has its status, and where known its location, length and digest.',
  },
  'request-failed': {
    status: 409,
    title: 'The request failed for good',
    retryable: false,
    about: 'The request failed, and the failure is final for this key.',
    next: 'Mend what was wrong, and send a new request under a new key.',
  },
  'invalid-request': {
    status: 400,
    title: 'The request cannot be read',
    retryable: false,
    about: 'The request is not what its headers say, or its address cannot be read. Nothing was done.',
    next: 'Mend what `detail` and `errors` name.',
  },
  'content-too-large': {
    status: 413,
    title: 'The request is too large',
    retryable: false,
    about: 'The body is larger than this operation takes. Nothing was done.',
    next: 'Send less, or send it in parts.',
  },
  'not-committed': {
    status: 500,
    title: 'The request was undone',
    retryable: false,
    about: 'The transaction of the request was rolled back: nothing took effect.',
    next: 'Send the same request again later, with the same key, when the cause is mended; the operator sees it in the log.',
  },
  'internal-error': {
    status: 500,
    title: 'The server failed',
    retryable: false,
    about: 'The server could not carry out the request.',
    next: 'Report it with the time and the `X-Request-Id`. With the same key a later retry is safe.',
  },
  'operation-not-found': {
    status: 404,
    title: 'There is no such operation',
    retryable: false,
    about: 'There is no operation of that id, or it belongs to another caller, or its record has expired.',
    next: 'Check the id, and the credentials that the request was made with.',
  },
  'request-too-slow': {
    status: 408,
    title: 'The request did not arrive in time',
    retryable: true,
    about: 'The body did not arrive in time. Nothing was done.',
    next: 'Send the same request again with the same key.',
  },
  'too-busy': {
    status: 503,
    title: 'Too much is under way',
    retryable: true,
    about: 'More is under way than there is room for. Nothing was done.',
    next: 'Wait as long as `Retry-After` says, and send the same request again with the same key.',
  },
  'upstream-unreachable': {
    status: 503,
    title: 'The service cannot be reached',
    retryable: true,
    about: 'No connection to the service was made: the request has not reached it.',
    next: 'Wait as long as `Retry-After` says, and send the same request again with the same key.',
  },
  'upstream-broken': {
    status: 502,
    title: 'The outcome of the request is unknown',
    retryable: false,
    about: 'The connection to the service broke after the request was sent: it may have taken effect.',
    next: 'Do not send it under a new key. Find out what became of it at the service, or read the operation at `instance`.',
  },
  'upstream-late': {
    status: 504,
    title: 'The outcome of the request is unknown',
    retryable: false,
    about: 'The service did not answer in time: the request may have taken effect.',
    next: 'Do not send it under a new key. Find out what became of it at the service, or read the operation at `instance`.',
  },
  'upstream-failed': {
    status: 502,
    title: 'The service did not answer',
    retryable: false,
    about: 'The service gave no valid answer.',
    next: 'Look at the service; a request without a key is not repeated.',
  },
  'home-unreachable': {
    status: 503,
    title: 'The home region of the key cannot be reached',
    retryable: true,
    about: 'The region that alone accepts this key cannot be reached. Nothing was done.',
    next: 'Wait as long as `Retry-After` says, and send the same request again with the same key.',
  },
} as const satisfies Record<Situation, ProblemRow>

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

/** For SDKs that would retry by the status alone. */
export function shouldRetryHeaders(status: number, retryable: boolean): HeaderList {
  if (status < LEAST_ERROR || retryable) return []
  return [
    ['x-should-retry', 'false'],
    ['stripe-should-retry', 'false'],
  ]
}

const LEAST_ERROR = 400
const LEAST_FAULT = 500
const TOO_MANY = 429

/** Widespread SDKs look for nothing else, and take an answer without it for a success. */
export function errorMember(
  status: number,
  code: string,
  message: string,
): { readonly error?: { readonly type: string; readonly code: string; readonly message: string } } {
  if (status < LEAST_ERROR) return {}
  return { error: { type: errorTypeOf(status), code, message } }
}

export function errorTypeOf(status: number): string {
  if (status === TOO_MANY) return 'rate_limit_error'
  return status >= LEAST_FAULT ? 'api_error' : 'invalid_request_error'
}

/** A problem document of RFC 9457, with what a client needs as top-level members. */
export function problemAnswer(base: string, situation: Situation, given: ProblemDetail, status?: number): Answer {
  const row: ProblemRow = situations[situation]
  const { detail, operation, instance, location, extra } = given
  const retryAfterMs = given.retryAfterMs ?? (situation === 'store-unavailable' ? STORE_RETRY_MS : null)
  const code = status ?? row.status
  const headers: HeaderList = [
    ...notKept,
    ...retryAfterHeader(retryAfterMs),
    ...shouldRetryHeaders(code, row.retryable),
    ...(location === undefined ? [] : [['location', location] as const]),
  ]
  const document = {
    type: `${base}/${situation}`,
    title: row.title,
    status: code,
    detail,
    ...(instance === undefined ? {} : { instance }),
    retryable: row.retryable,
    ...(operation === undefined ? {} : { operation }),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...errorMember(code, situation, detail),
    ...extra,
  }
  return jsonAnswer(code, PROBLEM_TYPE, document, headers)
}
