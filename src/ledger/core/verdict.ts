import { limits } from './limits.ts'

const mark = Symbol.for('onceonly.verdict')

interface VerdictFields {
  /** What every retry of a final failure is to be answered with, beside the failure itself. */
  readonly answer?: unknown
  readonly retryAfterMs?: number
}

/** What an effect throws to say what became of it. A plain error says nothing about that. */
export class Verdict extends Error {
  readonly verdict: 'final' | 'not_done' | 'released'
  /** What the effect meant to throw. */
  readonly error: unknown
  readonly retryAfterMs: number | null
  readonly answer?: unknown
  readonly [mark] = true

  constructor(verdict: Verdict['verdict'], error: unknown, { answer, retryAfterMs }: VerdictFields = {}) {
    super(failureOf(error).message, { cause: error })
    this.name = 'Verdict'
    this.verdict = verdict
    this.error = error
    this.retryAfterMs = retryAfterMs ?? null
    if (answer !== undefined) this.answer = answer
  }
}

/** Validly refused: recorded, replayed to every retry, never tried again. */
export function final(error: unknown, options: { readonly answer?: unknown } = {}): Verdict {
  return new Verdict('final', error, options)
}

/** Proven not to have happened: may be tried again, at once or after a while. */
export function notDone(error: unknown, options: { readonly retryAfterMs?: number } = {}): Verdict {
  return new Verdict('not_done', error, options)
}

/** The command never reached its operation: the claim is given back, and the key is free for any payload. */
export function released(error: unknown): Verdict {
  return new Verdict('released', error)
}

/** By shape, as for errors: two copies of the package in one process must understand each other. */
export function isVerdict(thrown: unknown): thrown is Verdict {
  return typeof thrown === 'object' && thrown !== null && mark in thrown
}

/** A recorded failure: enough to answer every retry alike. */
export interface Failure {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly data?: unknown
}

/** Anything may be thrown, also what cannot even be looked at: recording it must not fail for that. */
export function failureOf(error: unknown): Failure {
  try {
    return readFailure(error)
  } catch {
    return { name: 'Error', message: 'The error that was thrown cannot be read.' }
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
])

const CAUSE_DEPTH = 5

/** Recognises what proves that nothing was sent. Everything else is ambiguous, and stays so. */
export function classify(error: unknown, depth = CAUSE_DEPTH): 'not_done' | 'ambiguous' {
  if (typeof error !== 'object' || error === null || depth === 0) return 'ambiguous'
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown }
  if (typeof code === 'string' && neverSent.has(code)) return 'not_done'
  // Several addresses were tried: only when none of them was reached is it proven.
  if (Array.isArray(errors) && errors.length > 0) {
    return errors.every((each) => classify(each, depth - 1) === 'not_done') ? 'not_done' : 'ambiguous'
  }
  return cause === undefined ? 'ambiguous' : classify(cause, depth - 1)
}
