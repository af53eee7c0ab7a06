import type { OnceError } from '../../ledger/core/errors.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { failureOf } from '../../ledger/core/verdict.ts'
import type { Execution } from '../../ledger/present.ts'

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

/** The answer for an item whose effect was not run now, or has committed. */
export function answered<T>(execution: Execution<T>, words: Words<T>): ItemWords | Promise<ItemWords> {
  if (execution.kind === 'failed') return failure(execution.failure)
  return execution.kind === 'refused' ? refused(execution.error) : shown(words, execution.value)
}

/** The store did not answer, or took the claim away: nothing was begun for this item. */
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
    case 'outcome_not_stored':
      return failure({ name: '', message: '', code: 'NOT_STORED' })
    case 'retry_later':
      return { ...failure({ name: '', message: '', code: 'RETRY_LATER' }, true), retryAfterMs: error.retryAfterMs }
    case 'key_expired':
      return failure({ name: '', message: 'The item key is past its lifetime.', code: 'KEY_EXPIRED' })
    case 'identity_collision':
      return failure({ name: '', message: 'Choose another item key.', code: 'IDENTITY_COLLISION' })
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
