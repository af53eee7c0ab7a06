import { limits } from './limits.ts'
import { hasMark } from './mark.ts'

const mark = Symbol.for('onceonly.verdict')

interface VerdictFields {
  /** What every retry of a final failure is to be answered with, beside the failure itself. */
  readonly answer?: unknown
  readonly retryAfterMs?: number
  readonly counted?: boolean
}

/** What an effect throws to state its outcome. A plain error leaves it open. */
export class Verdict extends Error {
  readonly verdict: 'final' | 'not_done' | 'released'
  /** What the effect meant to throw. */
  readonly error: unknown
  readonly retryAfterMs: number | null
  /** False for an attempt that only learnt that its turn is still to come. */
  readonly counted: boolean
  readonly answer?: unknown
  readonly [mark] = true

  constructor(
    verdict: Verdict['verdict'],
    error: unknown,
    { answer, retryAfterMs, counted = true }: VerdictFields = {},
  ) {
    super(failureOf(error).message, { cause: error })
    this.name = 'Verdict'
    this.verdict = verdict
    this.error = error
    this.retryAfterMs = retryAfterMs ?? null
    this.counted = counted
    if (answer !== undefined) this.answer = answer
  }
}

/** Validly refused: recorded, replayed to every retry, never tried again. */
export function final(error: unknown, options: { readonly answer?: unknown } = {}): Verdict {
  return new Verdict('final', error, options)
}

/**
 * Proven not to have happened: may be tried again, at once or after a while. With `counted: false` a step of a run has not used
 * up one of its attempts: for one that waits for its turn, as under a rate.
 */
export function notDone(
  error: unknown,
  options: { readonly retryAfterMs?: number; readonly counted?: boolean } = {},
): Verdict {
  return new Verdict('not_done', error, options)
}

/** The command never reached its operation: the claim is given back, and the key is free for any payload. */
export function released(error: unknown): Verdict {
  return new Verdict('released', error)
}

export function isVerdict(thrown: unknown): thrown is Verdict {
  // Asked of every result: most of them are no objects, or none was thrown.
  return typeof thrown === 'object' && thrown !== null && hasMark(thrown, mark)
}

/** A recorded failure: enough to answer every retry alike. */
export interface Failure {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly data?: unknown
}

/** What an effect threw; an error that says so where inspecting it throws. Drivers and stores look at errors, too. */
export function readable(thrown: unknown): unknown {
  try {
    readFailure(thrown)
    return thrown
  } catch {
    return new Error(UNREADABLE)
  }
}

const UNREADABLE = 'The error that was thrown cannot be read.'

/** Anything may be thrown, also what cannot even be looked at: recording it must not fail for that. */
export function failureOf(error: unknown): Failure {
  try {
    return readFailure(error)
  } catch {
    return { name: 'Error', message: UNREADABLE }
  }
}

function readFailure(error: unknown): Failure {
  if (typeof error !== 'object' || error === null) {
    return { name: 'Error', message: String(error).slice(0, limits.failureMessageChars) }
  }
  const { name, message, code, data } = error as { name?: unknown; message?: unknown; code?: unknown; data?: unknown }
  return {
    name: typeof name === 'string' ? name.slice(0, limits.failureMessageChars) : 'Error',
    message: String(message ?? '').slice(0, limits.failureMessageChars),
    ...(code === undefined ? {} : { code: String(code).slice(0, limits.failureMessageChars) }),
    ...(data === undefined ? {} : { data }),
  }
}

/** Errors of the connection's first moments: whatever was to be sent never left. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_INVALID_URL',
])

/** Of `fetch`, which has no codes for what it refuses to send at all. */
const refusedByFetch = new Set(['bad port', 'unknown scheme'])

const CAUSE_DEPTH = 5

/** What a thrown error proves. */
export type Classify = (error: unknown) => 'not_done' | 'ambiguous'

/**
 * For `classify`, in effects that make exactly one outgoing call: when the connection was refused, the name not found, the
 * TLS handshake failed or `fetch` refused the address, nothing was sent. With a second call in the effect it proves nothing of the first.
 */
export function singleCall(error: unknown): ReturnType<Classify> {
  return neverLeft(error, CAUSE_DEPTH) ? 'not_done' : 'ambiguous'
}

function neverLeft(error: unknown, depth: number): boolean {
  if (typeof error !== 'object' || error === null || depth === 0) return false
  const { code, cause, errors, message } = error as Partial<Record<'code' | 'cause' | 'errors' | 'message', unknown>>
  if (typeof code === 'string' && neverSent.has(code)) return true
  if (message === 'fetch failed' && cause instanceof Error && refusedByFetch.has(cause.message)) return true
  // Several addresses were tried: only when none of them was reached is it proven.
  if (Array.isArray(errors) && errors.length > 0) return errors.every((each) => neverLeft(each, depth - 1))
  return cause !== undefined && neverLeft(cause, depth - 1)
}

/**
 * A thrown error is ambiguous unless the operation's `classify` says otherwise. One that itself throws proves nothing.
 */
export function provesNotDone(classify: Classify | undefined, thrown: unknown): boolean {
  try {
    return classify?.(thrown) === 'not_done'
  } catch {
    return false
  }
}
