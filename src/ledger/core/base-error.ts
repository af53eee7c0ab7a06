import { hasMark } from './mark.ts'

/**
 * What every error of the library is, and the rows that any part of it may need: a client in a browser must not carry the
 * advice of all stores.
 */

/** Whether the change that failed took effect. */
export type AppliedWord = 'no' | 'maybe'

export interface ErrorRow {
  /** May the same call succeed later, unchanged? */
  readonly retryable: boolean
  /** Whether the effect or the write may have happened. */
  readonly applied: AppliedWord
  /** What the person who reads it should do next. */
  readonly next: string
  /** False where each message has advice of its own, which the general sentence would only repeat. */
  readonly inMessage?: false
}

export type ErrorTable = Readonly<Record<string, ErrorRow>>

export const commonErrors = {
  bad_input: { retryable: false, applied: 'no', next: 'Correct the input that the message names.', inMessage: false },
  bad_option: { retryable: false, applied: 'no', next: 'Correct the option that the message names.', inMessage: false },
  key_reused: {
    retryable: false,
    applied: 'no',
    next: 'Use a new key for a new payload; the recorded one was left untouched.',
  },
  retry_later: { retryable: true, applied: 'no', next: 'Retry the same call after `retryAfterMs`.' },
  outcome_unknown: {
    retryable: false,
    applied: 'maybe',
    next: 'Find out whether the effect happened, then `resolve` the record; it is never repeated by itself.',
  },
  store_busy: {
    retryable: true,
    applied: 'no',
    next: 'Retry: another transaction holds the row, or too many requests wait.',
  },
  stopped: { retryable: true, applied: 'no', next: 'The ledger or store was stopped; create a new one.' },
} as const satisfies ErrorTable

export interface ErrorOptions {
  /** The error that led to this one. @default none */
  readonly cause?: unknown
  /** Whether the change was applied, where that is known better than the table says. @default the table's */
  readonly applied?: AppliedWord
  /** Whether the same call may succeed later, where that is known better than the table says. @default the table's */
  readonly retryable?: boolean
  /** How long to wait before the next attempt, in milliseconds. @default unknown */
  readonly retryAfterMs?: number
  /** What to do here, where the table's sentence speaks of something else than the caller used. @default the table's */
  readonly next?: string
  /** Values for programs, such as ids and counts. @default {} */
  readonly details?: Readonly<Record<string, unknown>>
}

const mark = Symbol.for('onceonly.error')

/** Users know it as `OnceError`, which also has the rows of the ledger. */
export class BaseError<C extends string = string> extends Error {
  /** What happened. */
  readonly code: C
  /** Whether the same call may succeed later, unchanged. */
  readonly retryable: boolean
  /** Whether the effect or the write may have happened. */
  readonly applied: AppliedWord
  /** How long to wait before the next attempt, in milliseconds; null where that is not known. */
  readonly retryAfterMs: number | null
  /** What to do next, in one sentence. */
  readonly next: string
  readonly details: Readonly<Record<string, unknown>>
  readonly [mark] = true

  constructor(code: C & keyof typeof commonErrors, message: string, options?: ErrorOptions)
  constructor(code: C, message: string, options: ErrorOptions | undefined, row: ErrorRow)
  constructor(
    code: C,
    message: string,
    options: ErrorOptions = {},
    row = commonErrors[code as C & keyof typeof commonErrors] as ErrorRow,
  ) {
    const { retryable, applied, next: advice, inMessage } = row
    const next = options.next ?? advice
    super(
      inMessage === false ? message : `${message} ${next}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'OnceError'
    this.code = code
    this.retryable = options.retryable ?? retryable
    this.applied = options.applied ?? applied
    this.retryAfterMs = options.retryAfterMs ?? null
    this.next = next
    this.details = options.details ?? {}
  }
}

export function isBaseError<C extends string = string>(error: unknown, code?: C): error is BaseError<C> {
  return hasMark(error, mark) && (code === undefined || (error as BaseError).code === code)
}
