import type { Claimed, Lease } from '../../ledger/claim.ts'
import { decodeValue } from '../../ledger/core/codec.ts'
import type { OnceError } from '../../ledger/core/errors.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { failureOf } from '../../ledger/core/verdict.ts'
import { unpackFailure } from '../../ledger/outcome.ts'

/** What the caller of a batch gets for one item, beside its key. */
export type ItemWords =
  | { readonly status: 'SUCCEEDED'; readonly resourceId: string; readonly [more: string]: unknown }
  | {
      readonly status: 'FAILED'
      readonly errorCode: string
      readonly retryable: boolean
      readonly [more: string]: unknown
    }
  | { readonly status: 'IN_PROGRESS'; readonly [more: string]: unknown }
  | { readonly status: 'UNKNOWN'; readonly [more: string]: unknown }

export interface Words<T> {
  show(value: T): ItemWords | Promise<ItemWords>
  onError(error: unknown): void
  /** Whether an error that is no verdict leaves an item that may be tried again. */
  mayRepeat(error: unknown): boolean
}

/** What was done is done, but cannot be put into words now. "Failed" would send its caller off to try another key. */
export async function shown<T>({ show, onError }: Words<T>, value: T): Promise<ItemWords> {
  try {
    return await show(value)
  } catch (error) {
    onError(error)
    return { status: IN_PROGRESS, detail: 'Its result cannot be shown right now.', retryAfterMs: SHOW_AGAIN_MS }
  }
}

const SHOW_AGAIN_MS = SECOND

export function plainWords(value: unknown): ItemWords {
  const given = typeof value === 'object' && value !== null ? value : { resourceId: String(value) }
  return { resourceId: '', ...given, status: 'SUCCEEDED' }
}

type Standing = Exclude<Claimed, { readonly lease: Lease }>

/** The answer for an item that was not granted: its existing record. */
export async function standing<T>(claimed: Standing, words: Words<T>): Promise<ItemWords> {
  switch (claimed.kind) {
    case 'replay_success':
      if (claimed.outcome.kept === 'not_stored') return failure({ name: 'Error', message: '', code: 'NOT_STORED' })
      return recorded(claimed.outcome.data, words)
    case 'replay_failure':
      return failure(unpackFailure(claimed.outcome.data).failure)
    case 'in_progress':
      return { status: 'IN_PROGRESS', retryAfterMs: claimed.retryAfterMs }
    case 'outcome_unknown':
      return { status: 'UNKNOWN' }
    case 'retry_later':
      return { ...failure({ name: '', message: '', code: 'RETRY_LATER' }, true), retryAfterMs: claimed.retryAfterMs }
    case 'key_reused':
      return failure({ name: '', message: 'The item key was used for another item.', code: 'IDEMPOTENCY_KEY_REUSED' })
    case 'key_expired':
      return failure({ name: '', message: 'The item key is past its lifetime.', code: 'KEY_EXPIRED' })
    case 'identity_collision':
      return failure({ name: '', message: 'Choose another item key.', code: 'IDENTITY_COLLISION' })
  }
}

function recorded<T>(data: string | null, words: Words<T>): ItemWords | Promise<ItemWords> {
  let value: unknown
  try {
    value = data === null ? undefined : decodeValue(data)
  } catch (error) {
    return undecided(error, words)
  }
  return shown(words, value as T)
}

/** The store could not be asked, or took the claim away: nothing was begun for this item. */
export function undecided<T>(error: unknown, words: Words<T>): ItemWords {
  if (isOnceError(error)) return refused(error)
  words.onError(error)
  return failure(FAULT, true)
}

export function refused(error: OnceError): ItemWords {
  switch (error.code) {
    case 'key_reused':
      return failure({ name: '', message: 'The item key was used for another item.', code: 'IDEMPOTENCY_KEY_REUSED' })
    case 'in_progress':
    case 'lease_lost':
    case 'lease_over':
      return { status: 'IN_PROGRESS', ...(error.retryAfterMs === null ? {} : { retryAfterMs: error.retryAfterMs }) }
    case 'outcome_unknown':
      return { status: 'UNKNOWN' }
    case 'not_done': {
      const given = failureOf(error.cause)
      return failure(given, (error.cause as { retryable?: unknown } | null)?.retryable === true)
    }
    default:
      return failure({ name: '', message: '', code: error.code.toUpperCase() }, error.retryable)
  }
}

const IN_PROGRESS = 'IN_PROGRESS'
/** Not for the caller: messages of drivers and providers stay inside. */
export const FAULT: Failure = { name: '', message: '' }

export function failure({ message, code, data }: Failure, retryable = false): ItemWords {
  // Some other command stands in the way: an effect says so by the code of what it throws.
  if (code === IN_PROGRESS) return { status: IN_PROGRESS, ...(message === '' ? {} : { detail: message }) }
  const errorCode = code ?? 'FAILED'
  const more = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {}
  return { ...more, status: 'FAILED', errorCode, retryable, ...(message === '' ? {} : { detail: message }) }
}
